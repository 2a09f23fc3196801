//! `[init]`: initial weights from a file instead of random ones.

use serde::{Deserialize, Serialize};

use super::hub::HubNames;
use super::kind::Kind;
use super::kind::check::{REGEX_HELP, wrong_regex};
use super::section::{Section, choices};
use crate::diagnostic::Diagnostic;

/// The `[init]` table.
#[derive(Clone, Debug, PartialEq)]
pub struct InitSpec {
    /// The folder of a run, a capsule, or a file of weights.
    pub from: String,
    /// The names and layouts of the file.
    pub layout: InitLayout,
    /// The key below which a PyTorch or JSON file keeps its weights; dots go deeper.
    pub top_level_key: Option<String>,
    /// Regular expressions with what replaces their matches in names of the file, one after the other.
    pub remap: Vec<Vec<String>>,
    /// Regular expressions for names after `remap`: matrices that are transposed first.
    pub transpose: Vec<String>,
    /// Regular expressions: other tensors are not loaded, and keep their random values.
    pub only: Vec<String>,
    /// Regular expressions: these tensors are not loaded.
    pub exclude: Vec<String>,
    /// Whether tensors may be missing in the file, and others be left over there.
    pub partial: bool,
    /// Whether tensors with a different shape keep their random values.
    pub skip_mismatched: bool,
    /// The folder of an adapter that is loaded too.
    pub adapter: Option<String>,
    /// How the tensors of a folder of a hub are named, if the network comes from one.
    pub hub: Option<HubNames>,
}

choices! {
    /// Whose names and layouts a file of weights has.
    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum InitLayout {
        Auto "auto" "According to the file: Burn's for runs and capsules, otherwise PyTorch's unless the file's metadata says otherwise.",
        Pytorch "pytorch" "PyTorch's: `linear.weight` is [out, in], norms have `weight` and `bias`, gates are stacked.",
        Burn "burn" "Burn's: `linear.weight` is [in, out], norms have `gamma` and `beta`, each gate is a tensor.",
    }
}

/// Regular expressions, or one.
fn patterns() -> Kind {
    Kind::one_or_many(Kind::Regex)
}

impl InitSpec {
    pub(super) fn decode(s: &mut Section<'_>) -> Self {
        let pair = Kind::Tuple {
            item: Box::new(Kind::AnyText),
            len: 2,
        };
        let spec = Self {
            from: s
                .field(
                    "from",
                    Kind::Path,
                    "The source of the weights: the folder of a run, a capsule, or a file (`.safetensors`, `.pt`, `.pth`, `.npz`, `.json`, `.onnx`, `.bpk`).",
                )
                .required(),
            layout: s.choice(
                "layout",
                "The convention for names and layouts in the file.",
                InitLayout::Auto,
            ),
            top_level_key: s
                .field(
                    "top_level_key",
                    Kind::Text,
                    "The key that contains the weights in a PyTorch or JSON file, such as `state_dict`.",
                )
                .optional(),
            remap: s
                .field(
                    "remap",
                    Kind::list(pair, 0),
                    "Pairs of a regular expression and its replacement, applied in order to the names in the file; `$1` is the first group.",
                )
                .or(Vec::new()),
            transpose: s
                .field(
                    "transpose",
                    patterns(),
                    "Regular expressions for names after `remap`: matrices that match one are transposed, such as those of GPT-2, which are [in, out].",
                )
                .or(Vec::new()),
            only: s
                .field(
                    "only",
                    patterns(),
                    "Regular expressions for names after `remap`: only tensors that match one are loaded.",
                )
                .or(Vec::new()),
            exclude: s
                .field(
                    "exclude",
                    patterns(),
                    "Regular expressions for names after `remap`: tensors that match one are not loaded, such as those of a new head.",
                )
                .or(Vec::new()),
            partial: s
                .field(
                    "partial",
                    Kind::Bool,
                    "Whether the file may lack tensors of the network, which then keep random values, and contain others.",
                )
                .or(false),
            skip_mismatched: s
                .field(
                    "skip_mismatched",
                    Kind::Bool,
                    "Whether tensors with a different shape in the file keep random values.",
                )
                .or(false),
            adapter: s
                .field(
                    "adapter",
                    Kind::Path,
                    "The folder of an adapter as the library `peft` saves it, with `adapter_config.json` and `adapter_model.safetensors`: the first values of `[[adapters]]`.",
                )
                .optional(),
            hub: None,
        };
        refuse_patterns(s, &spec.remap);
        spec
    }
}

/// Refuses a pair whose left side is not a regular expression.
fn refuse_patterns(s: &mut Section<'_>, remap: &[Vec<String>]) {
    let Some(at) = s.written_at("remap") else {
        return;
    };
    for (number, pair) in remap.iter().enumerate() {
        let pattern = pair.first().map_or("", String::as_str);
        if let Some(reason) = wrong_regex(pattern) {
            let message =
                format!("`init.remap[{number}][0]` is not a regular expression: {reason}");
            let wrong = Diagnostic::error("out-of-range", message).at(at);
            s.refuse("remap", wrong.help(REGEX_HELP));
        }
    }
}
