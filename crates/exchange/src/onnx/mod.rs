//! ONNX graphs (<https://onnx.ai/onnx/repo-docs/IR.html>).

#[allow(missing_docs, reason = "the names are those of ONNX's specification")]
#[allow(clippy::all, reason = "the file is generated")]
#[rustfmt::skip]
pub mod messages;
