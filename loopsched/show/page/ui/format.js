// Numbers as the library's tables write them (loopsched.show.table), with a narrow space before units.

const PREFIXES = { '-12': 'p', '-9': 'n', '-6': 'µ', '-3': 'm', 0: '', 3: 'k', 6: 'M', 9: 'G', 12: 'T', 15: 'P' };
const THIN = '\u202f';

// Of two neighbours equally near, Python writes the even one, JavaScript the larger: more digits tell a tie.
const MORE = 30;

function even(short, long) {
  const kept = long.slice(0, -MORE).replace(/\.$/, '');
  return /^50*$/.test(long.slice(-MORE)) && /[02468]$/.test(kept) ? kept : short;
}

function fixed(value, decimals) {
  return even(value.toFixed(decimals), value.toFixed(decimals + MORE));
}

function exponential(value, decimals) {
  const [mantissa, power] = value.toExponential(decimals).split('e');
  return [even(mantissa, value.toExponential(decimals + MORE).split('e')[0]), power];
}

function inDigits(value, digits) {
  return Number(exponential(value, digits - 1).join('e'));
}

// Python's '%.4g'.
function general(value, digits = 4) {
  if (!Number.isFinite(value)) return value > 0 ? 'inf' : '-';
  if (value === 0) return '0';
  const [mantissa, power] = exponential(value, digits - 1);
  if (Number(power) < -4 || Number(power) >= digits) {
    return `${trimmed(mantissa)}e${power[0]}${power.slice(1).padStart(2, '0')}`;
  }
  return trimmed(fixed(value, Math.max(0, digits - 1 - Number(power))));
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

const COUNTED = ['B', 'FLOP'];

function scaled(given, unit = '') {
  if (given === null || given === undefined || Number.isNaN(given)) return '–';
  const value = Number(given);
  if (!unit && Number.isInteger(value) && Math.abs(value) < 1e6) return value.toLocaleString('en');
  if (value === 0 || !Number.isFinite(value)) return unit ? `${general(value)}${THIN}${unit}` : general(value);
  const rounded = inDigits(value, 4);
  if (!unit) return Math.abs(rounded) >= 1e-3 && Math.abs(rounded) < 1e6 ? inFour(rounded) : powered(exponential(value, 3).join('e'));
  const lowest = unit === 's' || unit === 'J' ? -12 : 0;
  let power = 3 * Math.floor(Math.log10(Math.abs(rounded)) / 3);
  power = Math.max(lowest, Math.min(power, unit === 's' ? 0 : 15)); // no kiloseconds
  const number = rounded / 10 ** power;
  if (!power && COUNTED.includes(unit) && Number.isInteger(value)) return `${value}${THIN}${unit}`;
  return `${Math.abs(number) >= 1 ? inFour(number) : number.toFixed(3)}${THIN}${PREFIXES[power]}${unit}`;
}

// Four digits, thousands set off.
function inFour(number) {
  const decimals = Math.max(0, 3 - Math.floor(Math.log10(Math.abs(number))));
  return number.toLocaleString('en', { minimumFractionDigits: decimals, maximumFractionDigits: decimals });
}

function percent(share, decimals = 1) {
  if (share === null || share === undefined || Number.isNaN(share)) return '–';
  return `${fixed(100 * share, decimals)}${THIN}%`;
}

// What memories hold, in four digits, and their capacities: powers of 1,024.
function capacity(given) {
  const [number, unit] = binary(given).split(THIN);
  return `${trimmed(number)}${THIN}${unit}`;
}

function binary(given) {
  let [number, unit] = [Number(given), 'B'];
  for (const larger of ['KiB', 'MiB', 'GiB']) {
    if (Math.round(number) < 1024) break;
    [number, unit] = [Math.max(number / 1024, 1), larger];
  }
  if (unit === 'B') return `${number}${THIN}B`;
  const digits = Math.max(0, 3 - Math.floor(Math.log10(inDigits(number, 4))));
  return `${fixed(number, digits)}${THIN}${unit}`;
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
