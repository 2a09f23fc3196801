//! Names of layers as names in Python.

use std::collections::BTreeSet;

/// Python's keywords, and attributes of `torch.nn.Module` that a layer could be named after.
const TAKEN: &[&str] = &[
    "and",
    "as",
    "assert",
    "async",
    "await",
    "break",
    "class",
    "continue",
    "def",
    "del",
    "elif",
    "else",
    "except",
    "finally",
    "for",
    "from",
    "global",
    "if",
    "import",
    "in",
    "is",
    "lambda",
    "nonlocal",
    "not",
    "or",
    "pass",
    "raise",
    "return",
    "try",
    "while",
    "with",
    "yield",
    "False",
    "None",
    "True",
    "add_module",
    "apply",
    "bfloat16",
    "buffers",
    "call_super_init",
    "children",
    "compile",
    "cpu",
    "cuda",
    "double",
    "dump_patches",
    "eval",
    "extra_repr",
    "float",
    "forward",
    "get_buffer",
    "get_extra_state",
    "get_parameter",
    "get_submodule",
    "half",
    "ipu",
    "load_state_dict",
    "modules",
    "mtia",
    "named_buffers",
    "named_children",
    "named_modules",
    "named_parameters",
    "parameters",
    "register_buffer",
    "register_module",
    "register_parameter",
    "requires_grad_",
    "set_extra_state",
    "set_submodule",
    "share_memory",
    "state_dict",
    "to",
    "to_empty",
    "train",
    "training",
    "type",
    "xpu",
    "zero_grad",
    "T_destination",
    // Names used by the generated code itself.
    "F",
    "nn",
    "torch",
    "math",
    "self",
    "super",
    "x",
    "items",
    "causal_mask",
    "local_response_norm",
];

/// An identifier for each name, all different: other characters become `_`.
pub fn identifiers<'a>(names: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut taken: BTreeSet<String> = TAKEN.iter().map(|name| (*name).to_owned()).collect();
    let unique = names.map(|name| {
        let base = identifier(name);
        let mut unique = base.clone();
        let mut number = 1;
        while !taken.insert(unique.clone()) {
            number += 1;
            unique = format!("{base}_{number}");
        }
        unique
    });
    unique.collect()
}

fn identifier(name: &str) -> String {
    let allowed = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    let mut name: String = name.chars().map(allowed).collect();
    // A leading underscore would be a private attribute of the module, a leading digit no name.
    if name.starts_with(|c: char| c.is_ascii_digit() || c == '_') {
        name.insert_str(0, "layer_");
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_identifiers_and_stay_apart() {
        let names = [
            "linear_1", "a.b", "a_b", "a-b", "forward", "class", "1st", "_x", "x", "a_b_2",
        ];
        let found = identifiers(names.into_iter());
        assert_eq!(
            found,
            [
                "linear_1",
                "a_b",
                "a_b_2",
                "a_b_3",
                "forward_2",
                "class_2",
                "layer_1st",
                "layer__x",
                "x_2",
                "a_b_2_2",
            ]
        );
    }
}
