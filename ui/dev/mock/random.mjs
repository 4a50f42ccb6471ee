// Random numbers that are the same in every run.

/** A generator of numbers in [0, 1): xorshift, good enough for pictures. */
export function seeded(seed) {
  let x = seed >>> 0 || 1;
  return () => {
    x ^= x << 13;
    x ^= x >>> 17;
    x ^= x << 5;
    x >>>= 0;
    return x / 2 ** 32;
  };
}
