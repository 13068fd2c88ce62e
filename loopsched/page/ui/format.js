// Numbers as the library's tables write them (loopsched.render), with a narrow space before units.

const PREFIXES = { '-12': 'p', '-9': 'n', '-6': 'µ', '-3': 'm', 0: '', 3: 'k', 6: 'M', 9: 'G', 12: 'T', 15: 'P' };
const THIN = '\u202f';

// Python's '%.4g'.
function general(value, digits = 4) {
  if (!Number.isFinite(value)) return value > 0 ? 'inf' : '-';
  if (value === 0) return '0';
  const exponent = Number(value.toExponential(digits - 1).split('e')[1]);
  if (exponent < -4 || exponent >= digits) {
    const [mantissa, power] = value.toExponential(digits - 1).split('e');
    const sign = power[0] === '-' ? '-' : '+';
    return `${trimmed(mantissa)}e${sign}${power.replace(/^[+-]/, '').padStart(2, '0')}`;
  }
  return trimmed(value.toFixed(Math.max(0, digits - 1 - exponent)));
}

function trimmed(text) {
  return text.includes('.') ? text.replace(/\.?0+$/, '') : text;
}

// '2.28e+35' as people write it.
function powered(text) {
  const [mantissa, power] = text.split('e');
  if (power === undefined) return text;
  const raised = [...String(Number(power))].map((sign) => (sign === '-' ? '⁻' : '⁰¹²³⁴⁵⁶⁷⁸⁹'[Number(sign)])).join('');
  return `${mantissa}${THIN}×${THIN}10${raised}`;
}

function scaled(given, unit = '') {
  if (given === null || given === undefined || Number.isNaN(given)) return '–';
  const value = Number(given);
  if (!unit) {
    return Number.isInteger(value) && Math.abs(value) < 1e6 ? value.toLocaleString('en') : powered(general(value));
  }
  if (value === 0 || !Number.isFinite(value)) return `${general(value)}${THIN}${unit}`;
  const rounded = Number(value.toPrecision(4));
  const lowest = unit === 's' || unit === 'J' ? -12 : 0;
  let power = 3 * Math.floor(Math.log10(Math.abs(rounded)) / 3);
  power = Math.max(lowest, Math.min(power, 15));
  const number = rounded / 10 ** power;
  if (!power && Number.isInteger(value)) return `${value}${THIN}${unit}`;
  const decimals = Math.abs(number) >= 1 ? Math.max(0, 3 - Math.floor(Math.log10(Math.abs(number)))) : 3;
  return `${number.toFixed(decimals)}${THIN}${PREFIXES[power]}${unit}`;
}

function percent(share, decimals = 1) {
  if (share === null || share === undefined || Number.isNaN(share)) return '–';
  return `${(100 * share).toFixed(decimals)}${THIN}%`;
}

// What memories hold, in four digits, and their capacities: powers of 1,024.
function capacity(given) {
  const [number, unit] = binary(given).split(THIN);
  return `${trimmed(number)}${THIN}${unit}`;
}

function binary(given) {
  const bytes = Number(given);
  for (const [power, unit] of [[3, 'GiB'], [2, 'MiB'], [1, 'KiB']]) {
    const number = bytes / 1024 ** power;
    if (number >= 1) {
      const digits = Math.max(0, 3 - Math.floor(Math.log10(number)));
      return `${number.toFixed(number < 1000 ? digits : 0)}${THIN}${unit}`;
    }
  }
  return `${bytes}${THIN}B`;
}

// Every digit, in groups.
function exact(given) {
  return given === null || given === undefined ? '–' : String(given).replace(/\B(?=(\d{3})+(?!\d))/g, ',');
}

// How far a value is from another: '+12.3 %', '× 4.1', 'same'.
function difference(value, base) {
  const [mine, other] = [Number(value), Number(base)];
  if (mine === other) return 'same';
  if (!other || !Number.isFinite(mine / other)) return '';
  const ratio = mine / other;
  if (ratio >= 2) return `×${THIN}${general(ratio, 3)}`;
  const share = 100 * (ratio - 1);
  const decimals = Math.abs(share) >= 10 ? 1 : 2;
  if (Math.abs(share) < 0.005) return 'nearly same';
  const text = Math.abs(share).toFixed(decimals);
  return `${share < 0 ? '−' : '+'}${text}${THIN}%`;
}
