//! Which layers the modules of a file are, by their order and the shapes of their tensors, and which weights are its
//! tensors without a module: exporters to ONNX name constants that they computed by the nodes that use them, such as the
//! transposed matrix of a linear layer `onnx::MatMul_13`.

use regex::Regex;
use runner_core::plan::init::{InitFate, InitReport};

/// More modules would make a message that nobody reads.
const MOST: usize = 32;

/// The names of a module of a file and of the layer that it is.
pub type Pair<'a> = (&'a str, &'a str);

/// A name, and a shape.
type Tensor = (String, Vec<usize>);

/// What is what by order.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Order<'a> {
    /// Modules, and the layers that they are.
    pub modules: Vec<Pair<'a>>,
    /// Tensors without a module, and the weights that they are.
    pub tensors: Vec<Pair<'a>>,
    /// Those of the weights whose tensors are transposed.
    pub transposed: Vec<&'a str>,
}

impl<'a> Order<'a> {
    /// That of a file whose names are not those of the network. None if its tensors do not have the shapes of those of
    /// the network one after the other.
    pub fn of(report: &'a InitReport) -> Option<Self> {
        let of = |fate: InitFate| report.rows.iter().filter(move |row| row.fate == fate);
        let ours = of(InitFate::Missing).filter_map(|row| row.ours.as_ref());
        let theirs = of(InitFate::Unused).filter_map(|row| row.theirs.as_ref());
        let (named, mut nameless): (Vec<_>, Vec<_>) =
            theirs.partition(|(name, _)| name.contains('.'));
        if nameless.is_empty() {
            let modules = pairs(ours, named.into_iter())?;
            return Some(Self {
                modules,
                ..Self::default()
            });
        }
        nameless.sort_by_cached_key(|(name, _)| natural(name));
        let (weights, others): (Vec<_>, Vec<_>) = ours.partition(|(_, shape)| shape.len() > 1);
        if weights.len() != nameless.len() || weights.len() > MOST {
            return None;
        }
        let mut order = Self::default();
        for (their, our) in nameless.iter().zip(&weights) {
            if is_transposed(their, our)? {
                order.transposed.push(&our.0);
            }
            order.tensors.push((&their.0, &our.0));
        }
        if !others.is_empty() || !named.is_empty() {
            order.modules = pairs(others.into_iter(), named.into_iter())?;
        }
        Some(order)
    }

    /// As the value of `remap`. Modules come first, so that none of their patterns changes a new name.
    pub fn remap(&self) -> String {
        let modules = self.modules.iter();
        let modules = modules.map(|(from, to)| format!("['{}', '{to}.']", pattern(from)));
        let tensors = self.tensors.iter();
        let tensors = tensors.map(|(from, to)| format!("['^{}$', '{to}']", regex::escape(from)));
        let all: Vec<String> = modules.chain(tensors).collect();
        format!("[{}]", all.join(", "))
    }

    /// As the value of `transpose`; none if nothing is transposed.
    pub fn transpose(&self) -> Option<String> {
        let all = self.transposed.iter();
        let all: Vec<String> = all
            .map(|name| format!("'^{}$'", regex::escape(name)))
            .collect();
        (!all.is_empty()).then(|| format!("[{}]", all.join(", ")))
    }
}

/// Whether a tensor without a module is the transpose of a weight; none if it is not the weight.
fn is_transposed((name, their): &Tensor, (_, our): &Tensor) -> Option<bool> {
    let is_matrix = their.len() == 2;
    let is_turned = is_matrix && their.iter().rev().eq(our);
    // A product has its matrix on the right: inputs come first, also if there are as many outputs.
    if is_turned && (their != our || name.contains("MatMul")) {
        return Some(true);
    }
    (their == our).then_some(false)
}

/// The modules of a file whose names are not those of the network, each with the layer at its place. None if they do not
/// have the same tensors of the same shapes one after the other; only the last one may have other shapes, as a new head.
fn pairs<'a>(
    ours: impl Iterator<Item = &'a Tensor>,
    theirs: impl Iterator<Item = &'a Tensor>,
) -> Option<Vec<Pair<'a>>> {
    let (ours, mut theirs) = (modules(ours), modules(theirs));
    if ours.is_empty() || ours.len() != theirs.len() || ours.len() > MOST {
        return None;
    }
    // Some formats sort names, so that 10 comes before 2.
    if !fit(&ours, &theirs) {
        theirs.sort_by_cached_key(|module| natural(module.name));
    }
    if !fit(&ours, &theirs) {
        return None;
    }
    let pairs = theirs.iter().zip(&ours);
    let pairs: Vec<Pair<'_>> = pairs.map(|(their, our)| (their.name, our.name)).collect();
    names_are_theirs(&pairs, &ours, &theirs).then_some(pairs)
}

fn pattern(module: &str) -> String {
    format!("^{}\\.", regex::escape(module))
}

/// Tensors whose names begin with the same module.
struct Module<'a> {
    name: &'a str,
    /// The rest of each name, with its shape.
    tensors: Vec<(&'a str, &'a [usize])>,
}

/// The modules of some tensors, in the order of their first ones.
fn modules<'a>(tensors: impl Iterator<Item = &'a Tensor>) -> Vec<Module<'a>> {
    let mut modules: Vec<Module<'a>> = Vec::new();
    for (name, shape) in tensors {
        let Some((module, leaf)) = name.rsplit_once('.') else {
            return Vec::new();
        };
        let tensor = (leaf, shape.as_slice());
        match modules.iter_mut().find(|known| known.name == module) {
            Some(known) => known.tensors.push(tensor),
            None => modules.push(Module {
                name: module,
                tensors: vec![tensor],
            }),
        }
    }
    modules
}

/// Whether modules are those of a network, in order.
fn fit(ours: &[Module<'_>], theirs: &[Module<'_>]) -> bool {
    let last = ours.len() - 1;
    let mut pairs = ours.iter().zip(theirs).enumerate();
    pairs.all(|(at, (our, their))| {
        our.tensors.len() == their.tensors.len()
            && our.tensors.iter().all(|(leaf, shape)| {
                let found = their.tensors.iter().find(|(other, _)| other == leaf);
                found.is_some_and(|(_, other)| other == shape || at == last)
            })
    })
}

/// Whether patterns, which are applied one after the other, give each tensor the name of its own.
fn names_are_theirs(pairs: &[Pair<'_>], ours: &[Module<'_>], theirs: &[Module<'_>]) -> bool {
    let compiled = pairs.iter().map(|(from, to)| {
        let regex = Regex::new(&pattern(from)).ok()?;
        Some((regex, format!("{to}.")))
    });
    let Some(compiled) = compiled.collect::<Option<Vec<_>>>() else {
        return false;
    };
    let renamed = |name: String| {
        compiled.iter().fold(name, |name, (regex, to)| {
            let to = regex::NoExpand(to);
            regex.replace(&name, to).into_owned()
        })
    };
    let mut modules = ours.iter().zip(theirs);
    modules.all(|(our, their)| {
        let mut leaves = their.tensors.iter().map(|(leaf, _)| leaf);
        leaves
            .all(|leaf| renamed(format!("{}.{leaf}", their.name)) == format!("{}.{leaf}", our.name))
    })
}

/// The parts of a name, numbers as numbers.
fn natural(name: &str) -> Vec<(u64, &str)> {
    let mut parts = Vec::new();
    let mut rest = name;
    while let Some(first) = rest.chars().next() {
        let is_digit = first.is_ascii_digit();
        let end = rest.find(|c: char| c.is_ascii_digit() != is_digit);
        let (part, after) = rest.split_at(end.unwrap_or(rest.len()));
        rest = after;
        parts.push(match part.parse() {
            Ok(number) if is_digit => (number, ""),
            _ => (u64::MAX, part),
        });
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;
    use runner_core::plan::init::InitRow;

    fn report(ours: &[(&str, &[usize])], theirs: &[(&str, &[usize])]) -> InitReport {
        let tensor = |(name, shape): &(&str, &[usize])| Some(((*name).to_owned(), shape.to_vec()));
        let missing = ours.iter().map(|our| InitRow {
            fate: InitFate::Missing,
            ours: tensor(our),
            theirs: None,
        });
        let unused = theirs.iter().map(|their| InitRow {
            fate: InitFate::Unused,
            ours: None,
            theirs: tensor(their),
        });
        InitReport {
            rows: missing.chain(unused).collect(),
        }
    }

    const OURS: &[(&str, &[usize])] = &[
        ("linear_1.weight", &[8, 4]),
        ("linear_1.bias", &[8]),
        ("norm.weight", &[8]),
        ("norm.bias", &[8]),
        ("linear_2.weight", &[3, 8]),
        ("linear_2.bias", &[3]),
    ];

    #[test]
    fn modules_of_a_sequence_are_layers_in_their_order() {
        let found = report(
            OURS,
            &[
                ("0.weight", &[8, 4]),
                ("0.bias", &[8]),
                ("10.bias", &[3]),
                ("10.weight", &[3, 8]),
                ("2.bias", &[8]),
                ("2.weight", &[8]),
            ],
        );
        let order = Order::of(&found).unwrap();
        assert_eq!(
            order.modules,
            [("0", "linear_1"), ("2", "norm"), ("10", "linear_2")]
        );
        assert_eq!(
            order.remap(),
            r"[['^0\.', 'linear_1.'], ['^2\.', 'norm.'], ['^10\.', 'linear_2.']]"
        );
    }

    #[test]
    fn a_head_may_have_another_size_and_nothing_else() {
        let theirs: &[(&str, &[usize])] = &[
            ("a.0.weight", &[8, 4]),
            ("a.0.bias", &[8]),
            ("a.1.weight", &[8]),
            ("a.1.bias", &[8]),
            ("fc.weight", &[10, 8]),
            ("fc.bias", &[10]),
        ];
        let found = report(OURS, theirs);
        let head = Order::of(&found).unwrap();
        assert_eq!(head.modules.last(), Some(&("fc", "linear_2")));
        let mut other = theirs.to_vec();
        other[0].1 = &[8, 5];
        assert_eq!(Order::of(&report(OURS, &other)), None);
        assert_eq!(Order::of(&report(OURS, &theirs[..4])), None);
        assert_eq!(Order::of(&report(OURS, &[])), None);
    }

    #[test]
    fn constants_of_onnx_are_weights_in_their_order() {
        let square: &[(&str, &[usize])] = &[
            ("a.weight", &[8, 4]),
            ("a.bias", &[8]),
            ("b.weight", &[8, 8]),
            ("b.bias", &[8]),
            ("c.weight", &[3, 8]),
            ("c.bias", &[3]),
        ];
        let theirs: &[(&str, &[usize])] = &[
            ("0.bias", &[8]),
            ("2.bias", &[8]),
            ("4.bias", &[3]),
            ("onnx::MatMul_13", &[8, 3]),
            ("onnx::MatMul_9", &[4, 8]),
            ("onnx::MatMul_10", &[8, 8]),
        ];
        let found = report(square, theirs);
        let order = Order::of(&found).unwrap();
        assert_eq!(
            order.remap(),
            r"[['^0\.', 'a.'], ['^2\.', 'b.'], ['^4\.', 'c.'], ['^onnx::MatMul_9$', 'a.weight'], ['^onnx::MatMul_10$', 'b.weight'], ['^onnx::MatMul_13$', 'c.weight']]"
        );
        assert_eq!(
            order.transpose().unwrap(),
            r"['^a\.weight$', '^b\.weight$', '^c\.weight$']"
        );
        let mut other = theirs.to_vec();
        other[4].1 = &[5, 8];
        assert_eq!(Order::of(&report(square, &other)), None);
        assert_eq!(Order::of(&report(&square[..2], theirs)), None);
        // Only the weights have other names.
        let [weights, constants] = [&square[..1], &theirs[4..5]];
        let found = report(weights, constants);
        assert_eq!(
            Order::of(&found).unwrap().tensors,
            [("onnx::MatMul_9", "a.weight")]
        );
    }

    /// `a` becomes `b`, and what was `b` must not be changed to `c` again.
    #[test]
    fn names_that_would_be_changed_twice_get_no_suggestion() {
        let found = report(
            &[("b.weight", &[2]), ("c.weight", &[3])],
            &[("a.weight", &[2]), ("b.weight", &[3])],
        );
        assert_eq!(Order::of(&found), None);
    }
}
