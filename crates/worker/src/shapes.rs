//! Shapes that this process asks leases of, each by a number.

use oxiray_wire::control::Shape;

use crate::runtime::Runtime;

impl Runtime {
    /// The number of a shape.
    pub fn shape(&self, shape: Shape) -> u32 {
        let state = &mut *self.lock();
        if let Some(number) = state.shapes.get(&shape) {
            return *number;
        }
        let number = match shape.strategy.as_ref().is_some_and(|strategy| strategy.spread) {
            true => state.owner.spread_shape(),
            false => state.owner.shape(),
        };
        state.owner.set_priority(number, shape.priority);
        state.io.add_shape(shape.clone());
        state.shapes.insert(shape, number);
        number
    }
}
