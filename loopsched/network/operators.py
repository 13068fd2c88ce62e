"""What each ONNX operator is, where it is not a loop nest of products."""

from __future__ import annotations

from loopsched.network.node import Role

# Domains that mean the operators of the standard itself.
STANDARD = ("", "ai.onnx")
CONTRIBUTED = "com.microsoft"

# They look at the shape of a tensor only.
BLIND = frozenset({"Shape", "Size"})


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


_SHAPE = _names(
    """
    Cast CastLike BitCast Concat ConcatFromSequence Constant ConstantOfShape CenterCropPad
    DepthToSpace Dropout Expand EyeLike Flatten Gather GatherElements GatherND Identity OneHot
    Optional OptionalGetElement OptionalHasElement Pad Range Reshape ReverseSequence Scatter
    ScatterElements ScatterND SequenceAt SequenceConstruct SequenceEmpty SequenceErase
    SequenceInsert SequenceLength Shape Size Slice SpaceToDepth Split SplitToSequence Squeeze
    TensorScatter Tile Transpose Trilu Unsqueeze
    """
)
_VECTOR = _names(
    """
    Abs Acos Acosh Add AffineGrid And ArgMax ArgMin Asin Asinh Atan Atanh AveragePool
    BatchNormalization Bernoulli BitShift BitwiseAnd BitwiseNot BitwiseOr BitwiseXor
    BlackmanWindow Ceil Celu Clip Col2Im Compress Cos Cosh CumProd CumSum DequantizeLinear Div
    DynamicQuantizeLinear Elu Equal Erf Exp Floor Gelu GlobalAveragePool GlobalLpPool
    GlobalMaxPool Greater GreaterOrEqual GridSample GroupNormalization HammingWindow HannWindow
    HardSigmoid HardSwish Hardmax ImageDecoder InstanceNormalization IsInf IsNaN LRN
    LayerNormalization LeakyRelu Less LessOrEqual Log LogSoftmax LpNormalization LpPool Max
    MaxPool MaxRoiPool MaxUnpool Mean MeanVarianceNormalization MelWeightMatrix Min Mish Mod Mul
    Multinomial Neg NegativeLogLikelihoodLoss NonMaxSuppression NonZero Not Or PRelu Pow
    QuantizeLinear RMSNormalization RandomNormal RandomNormalLike RandomUniform
    RandomUniformLike Reciprocal ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax
    ReduceMean ReduceMin ReduceProd ReduceSum ReduceSumSquare RegexFullMatch Relu Resize RoiAlign
    RotaryEmbedding Round Selu Shrink Sigmoid Sign Sin Sinh Softmax
    SoftmaxCrossEntropyLoss Softplus Softsign Sqrt StringConcat StringNormalizer StringSplit Sub
    Sum SwiGLU Swish Tan Tanh TfIdfVectorizer ThresholdedRelu TopK Unique Upsample Where Xor
    """
)
_CONTROL = "the body's steps are known only at run time"
_WORK = {
    "DeformConv": "the positions it reads are data",
    "DFT": "a Fourier transform is not one nest of products",
    "STFT": "a Fourier transform is not one nest of products",
    "Det": "elimination is not a nest of products",
    "LinearAttention": "its sums run over a state that changes from step to step",
    "CausalConvWithState": "its input is part state, part data",
    "FlexAttention": "its scores are modified by a program",
    "If": "which branch runs is known only at run time",
    "Loop": _CONTROL,
    "Scan": _CONTROL,
    "SequenceMap": _CONTROL,
}
CONTROL = frozenset({"If", "Loop", "Scan", "SequenceMap"})
# Of the standard's machine-learning part, what sums products; the rest compares and looks up.
_CLASSICAL = frozenset({"LinearClassifier", "LinearRegressor", "SVMClassifier", "SVMRegressor"})

# Contributed operators that give back their first input's shape.
SAME_SHAPE = _names(
    """
    BiasAdd BiasGelu BiasSoftmax BiasSplitGelu FastGelu Gelu GroupNorm
    LayerNormalization QLinearAdd QLinearLeakyRelu QLinearMul QLinearSigmoid QLinearSoftmax
    QuickGelu RotaryEmbedding SimplifiedLayerNormalization SkipGroupNorm SkipLayerNormalization
    SkipSimplifiedLayerNormalization
    """
)
_CONTRIBUTED_VECTOR = SAME_SHAPE | _names(
    """
    DequantizeLinear EmbedLayerNormalization NhwcMaxPool QLinearAveragePool QLinearConcat
    QLinearGlobalAveragePool QuantizeLinear
    """
)
_NARROW = frozenset({"GatherBlockQuantized", "MatMulBnb4", "MatMulFpQ4", "MatMulNBits"})


def role_of(op: str, domain: str) -> tuple[Role, str]:
    """Say what an operator without a builder is, and if it has work, why no nest.

    Examples
    --------
    >>> role_of("Relu", ""), role_of("Reshape", "")
    (('vector', ''), ('shape', ''))
    >>> role_of("Fancy", "my.domain")
    ('unsupported', "an operator of 'my.domain' that is not known")
    """
    if domain in STANDARD or domain.startswith("ai.onnx.preview"):
        return _standard(op)
    if domain == "ai.onnx.ml":
        return ("unsupported", "sums of a classical model") if op in _CLASSICAL else ("vector", "")
    if domain == CONTRIBUTED and op in _CONTRIBUTED_VECTOR:
        return "vector", ""
    if domain == CONTRIBUTED and op in _NARROW:
        return "unsupported", "its weights take less than a byte each"
    return "unsupported", f"an operator of '{domain[:60]}' that is not known"


def _standard(op: str) -> tuple[Role, str]:
    if op in _SHAPE:
        return "shape", ""
    if op in _VECTOR:
        return "vector", ""
    return "unsupported", _WORK.get(op, "not a known standard operator")
