// Whole numbers as Python has them. Counts that may pass 2^53 are BigInt inside the
// model; what leaves it is a Number where that is exact.

const MOST_EXACT = 9007199254740991n; // 2^53 - 1

/** A BigInt as a Number where no digit is lost, else as it is. */
function outward(value) {
  return value <= MOST_EXACT && value >= -MOST_EXACT ? Number(value) : value;
}

// Below 2^53 a quotient that is not whole is no nearer to a whole number than a double
// can tell, so that rounding the double rounds the quotient. A remainder takes far longer.

/** Quotient of two safe Numbers >= 0, rounded down. */
function quotient(above, below) {
  return Math.floor(above / below);
}

/** Quotient of two safe Numbers >= 0, rounded up. */
function quotientAbove(above, below) {
  return Math.ceil(above / below);
}

/** Quotient of two BigInts >= 0, rounded up. */
function bigQuotientAbove(above, below) {
  return (above + below - 1n) / below;
}

function bitLength(value) {
  if (value <= MOST_EXACT) return value ? Number(value).toString(2).length : 0;
  return value.toString(2).length;
}

/** Quotient of two BigInts, 0 or more and above 0: the nearest double, as int / int in Python. */
function trueDivide(above, below) {
  if (above <= MOST_EXACT && below <= MOST_EXACT) return Number(above) / Number(below);
  if (above === 0n) return 0;
  // 55 or 56 bits of the quotient; a last bit that stands for all that is cut off.
  const shift = 55 - (bitLength(above) - bitLength(below));
  const high = shift >= 0 ? above << BigInt(shift) : above;
  const low = shift >= 0 ? below : below << BigInt(-shift);
  let bits = high / low;
  if (high % low !== 0n) bits |= 1n;
  // Number() rounds half to even; a power of two changes no bit of the mantissa.
  return Number(bits) * 2 ** -shift;
}

function bigProduct(values) {
  let product = 1n;
  for (const value of values) product *= value;
  return product;
}

function bigSum(values) {
  let sum = 0n;
  for (const value of values) sum += value;
  return sum;
}

function bigLarger(one, other) {
  return other > one ? other : one;
}

function bigSmaller(one, other) {
  return other < one ? other : one;
}

/** All combinations of one member of each list, the last list's fastest. */
function combinations(lists) {
  let found = [[]];
  for (const list of lists) {
    const longer = [];
    for (const head of found) for (const one of list) longer.push([...head, one]);
    found = longer;
  }
  return found;
}
