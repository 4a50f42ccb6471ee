// Sums of figures that may not be known.

/** Of those that are known; null if none is. */
export function sum(values: (number | null)[]): number | null {
  const known = values.filter((value) => value != null);
  return known.length ? known.reduce((a, b) => a + b, 0) : null;
}

export function mean(values: (number | null)[]): number | null {
  const total = sum(values);
  return total === null ? null : total / values.filter((value) => value != null).length;
}
