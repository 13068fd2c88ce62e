"""Mutants of problems and workloads."""

from __future__ import annotations

from .mutant import In

_convolution = In("problems/convolution.py", "test_builders.py")
_convolution.broken(
    "conv-window-one-long",
    "a filter with dilation covers one position more",
    "return (self.filter - 1) * self.dilation + 1",
    "return self.filter * self.dilation",
    "::test_output_size_counts_the_windows_that_fit",
)
_convolution.broken(
    "conv-windows-rounded-up",
    "a window that does not fit gives an output",
    "computed=(padded - side.window) // side.stride + 1)",
    "computed=-(-(padded - side.window) // side.stride) + 1)",
    "::test_output_size_counts_the_windows_that_fit",
)
_convolution.broken(
    "conv-odd-pad-first",
    "the odd position of even padding comes first",
    "before=total // 2, after=total - total // 2)",
    "before=total - total // 2, after=total // 2)",
    "::test_same_padding_gives_one_output_a_stride",
)
_convolution.broken(
    "conv-same-rounded-down",
    "'same' rounds the outputs down",
    "computed=-(-side.stored // side.stride))",
    "computed=side.stored // side.stride or 1)",
    "::test_same_padding_gives_one_output_a_stride",
)
_convolution.broken(
    "conv-padding-stored",
    "the stored input has its padding",
    "    stored = side.reach - side.before - side.after",
    "    stored = side.reach - side.before",
    "::test_given_output_means_the_smallest_input_with_that_output",
)
_convolution.broken(
    "conv-pads-top-left",
    "two paddings are read as top and bottom",
    "return parts[0], parts[0], parts[1], parts[1]",
    "return parts[0], parts[1], parts[0], parts[1]",
    "::test_given_output_means_the_smallest_input_with_that_output",
)
_convolution.broken(
    "conv-groups-of-all-channels",
    "each group has all channels",
    "sizes |= {dim: size // n_groups for dim, size in inner.items()}",
    "sizes |= dict(inner)",
    "::test_tensors_of_a_convolution_are_those_of_the_literal_loops",
)
_convolution.broken(
    "conv-gradient-reads-last",
    "the gradient of the input reads the weights first",
    "        tensors = [tensors[1], tensors[0], tensors[2]]",
    "        tensors = [tensors[0], tensors[1], tensors[2]]",
    "::test_read_order_of_each_pass",
)
_convolution.broken(
    "conv-offset-after",
    "positions of the padding are those behind",
    "offset=-side.before, size=side.stored)",
    "offset=-side.after, size=side.stored)",
    "::test_output_size_counts_the_windows_that_fit",
)
_problem = In("problems/problem.py", "test_builders.py")
_problem.broken(
    "problem-one-flop",
    "a multiply-accumulate counts as one operation",
    "return 2 * self.macs",
    "return self.macs",
    "test_score.py::test_derived_numbers",
)
_problem.broken(
    "problem-compound-is-parallel",
    "dimensions that share an axis of the output are parallel",
    "if dim in alone and dim not in shared)",
    "if dim in alone or dim in shared)",
    "::test_sums_and_parallel_dims_of_each_pass",
)
_problem.broken(
    "problem-reduction-of-inputs",
    "a dimension of the output counts as a sum",
    "if not written.is_indexed_by(dim))",
    "if not self.tensors[0].is_indexed_by(dim))",
    "::test_gemm_dims_tensors_and_reduction",
)
_problem.broken(
    "problem-plain-with-padding",
    "an axis with padding counts as plain",
    "is_plain = len(self.terms) == 1 and self.offset == 0 and self.size is None",
    "is_plain = len(self.terms) == 1 and self.offset == 0",
    "test_footprint.py::test_axis_count_is_the_walk",
)
_problem.broken(
    "problem-limit-let-through",
    "2**62 multiplications pass",
    "for _, size in problem.sizes) >= MAX_MACS:",
    "for _, size in problem.sizes) > MAX_MACS:",
    "::test_too_many_multiplications_are_refused",
)
_problem.broken(
    "problem-twice-indexed",
    "a dimension may index two axes of a tensor",
    "for axis in tensor.axes for name in axis.dims]) != len(tensor.dims):",
    "for axis in tensor.axes for name in axis.dims]) < len(tensor.dims):",
    "::test_impossible_axes",
)
_problem.broken(
    "problem-other-sizes-lost",
    "tensors that are not named go back to 4 bytes",
    "chosen.get(tensor.name, tensor.element_bytes)",
    "chosen.get(tensor.name, 4)",
    "::test_other_element_sizes_leave_the_rest",
)
_problem.broken(
    "problem-coefficient-zero",
    "a coefficient of 0 passes",
    "                if not is_count(coefficient):",
    "                if not is_count(coefficient, 0):",
    "::test_impossible_axes",
)
_projections = In("problems/projections.py", "test_builders.py")
_projections.broken(
    "projection-minus-added",
    "a negative offset is added",
    'offset += _whole(text, number) if sign == "+" else -_whole(text, number)',
    "offset += _whole(text, number)",
    "::test_affine_convolution_equals_conv2d",
)
_projections.broken(
    "projection-minus-dim",
    "a dimension may be subtracted",
    '        elif sign == "-":\n',
    '        elif sign == "*":\n',
    "::test_bad_affine_arguments",
)
_projections.broken(
    "projection-span-short",
    "an axis reaches one position less",
    "return 1 + sum(c * (sizes",
    "return sum(c * (sizes",
    "::test_bad_convolution_arguments",
)
_projections.broken(
    "projection-unit-coefficient",
    "an axis is written without its coefficients",
    'dim if c == 1 else f"{c}*{dim}"',
    'dim if c else f"{c}*{dim}"',
    "::test_projections_read_back_as_written",
)
_projections.broken(
    "einsum-repeated-letter",
    "a letter may index two axes of an operand",
    "            elif operand.count(letter) > 1:",
    "            elif operand.count(letter) > 2:",
    "::test_bad_einsum_arguments",
)
_workload_schema = In("problems/workload_schema.py", "test_workload_data.py")
_workload_schema.broken(
    "schema-both-heights",
    "the schema lets height of input and output stand together",
    '{"oneOf": [{"required": [one]} for one in pair]}',
    '{"anyOf": [{"required": [one]} for one in pair]}',
    "::test_schema_file_is_the_generated_one",
)
_workload_schema.broken(
    "schema-pad-of-three",
    "the schema lets three numbers of padding pass",
    '"items": _NONE_OR_MORE, "minItems": 4, "maxItems": 4}',
    '"items": _NONE_OR_MORE, "minItems": 3, "maxItems": 4}',
    "::test_schema_file_is_the_generated_one",
)
_workload_schema.broken(
    "schema-zero-size",
    "the schema lets a size of 0 pass",
    '_COUNT: dict[str, object] = {"type": "integer", "minimum": 1,',
    '_COUNT: dict[str, object] = {"type": "integer", "minimum": 0,',
    "::test_schema_file_is_the_generated_one",
)
_workload_schema.broken(
    "schema-wide-elements",
    "the schema lets elements of 2 KiB pass",
    '"minimum": 1, "maximum": 1024}',
    '"minimum": 1, "maximum": 2048}',
    "::test_schema_file_is_the_generated_one",
)
_workload_schema.broken(
    "schema-any-field",
    "the schema lets unknown fields of a layer pass",
    '        "required": [field.name for field in fields if field.required],\n'
    '        "additionalProperties": False,',
    '        "required": [field.name for field in fields if field.required],\n'
    '        "additionalProperties": True,',
    "::test_schema_file_is_the_generated_one",
)
_workload_schema.broken(
    "schema-both-lists",
    "the schema lets layers and problems stand together",
    '"oneOf": [{"required": [key]} for key in LAYERS],',
    '"anyOf": [{"required": [key]} for key in LAYERS],',
    "::test_schema_file_is_the_generated_one",
)

PROBLEMS = (
    *_convolution.mutants,
    *_problem.mutants,
    *_projections.mutants,
    *_workload_schema.mutants,
)
