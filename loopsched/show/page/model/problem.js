// Problems: the iteration space and the tensors that its points touch.
//
// Inside the model, dimensions and tensors are numbered in the problem's order.
// Extents are Numbers; element sizes and counts of elements are BigInt.

const MOST_PREPARED = 256;
const MOST_BYTES = 1n << 52n;
const preparedProblems = new Map();

/** The problem in the form that the model works on; equal data is prepared once. */
function prepareProblem(data) {
  const key = JSON.stringify(data);
  let found = preparedProblems.get(key);
  if (!found) {
    if (preparedProblems.size >= MOST_PREPARED) preparedProblems.clear();
    found = newProblem(data);
    preparedProblems.set(key, found);
  }
  return found;
}

function newProblem(data) {
  const dims = data.sizes.map(([dim]) => dim);
  const sizes = data.sizes.map(([, size]) => size);
  if (sizes.some((size) => !Number.isSafeInteger(size) || size < 1)) {
    throw new LoopschedError(`problem '${data.name}': a size is not from 1 to 2^53 - 1`);
  }
  const at = new Map(dims.map((dim, d) => [dim, d]));
  const tensors = data.tensors.map((tensor, t) => newTensor(tensor, t, data.output, at));
  const macs = bigProduct(sizes.map(BigInt));
  const problem = {
    name: data.name,
    kind: data.kind,
    dims,
    sizes,
    at,
    tensors,
    output: tensors.find((tensor) => tensor.isOutput),
    macs,
    bounds: new Map(Object.entries(data.bounds || {}).map(([room, n]) => [room, BigInt(n)])),
    known: new Map(),
  };
  if (bigSum(tensors.map((tensor) => tensorBytes(problem, tensor))) >= MOST_BYTES) {
    throw new LoopschedError(`problem '${data.name}': 2^52 bytes or more are not counted here`);
  }
  return problem;
}

function newTensor(tensor, number, output, at) {
  const axes = tensor.axes.map((axis) => ({
    dims: axis.terms.map(([dim]) => at.get(dim)),
    factors: axis.terms.map(([, factor]) => factor),
    offset: axis.offset,
    size: axis.size === undefined ? null : axis.size,
    isCompound: axis.terms.length > 1,
    isPlain: axis.terms.length === 1 && (axis.offset || 0) === 0 && !axis.size,
    extremes: new Map(),
  }));
  const indexed = new Array(at.size).fill(false);
  for (const axis of axes) for (const d of axis.dims) indexed[d] = true;
  return {
    name: tensor.name,
    number,
    axes,
    indexed,
    width: BigInt(tensor.element_bytes),
    isOutput: tensor.name === output,
  };
}
