//! Products of inputs that are summed over axes, in Einstein's notation: a letter for each axis.

use super::Input;
use super::shape::{Dims, Mismatch, wrong};

/// An equation such as `qd,kd->qk`, without the axis of the batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Equation {
    /// The letters of each operand.
    pub operands: Vec<Vec<char>>,
    /// The letters of the output.
    pub output: Vec<char>,
}

impl Equation {
    /// Reads an equation.
    ///
    /// # Errors
    /// What is wrong with it, as a continuation of its text.
    pub fn parse(text: &str) -> Result<Self, String> {
        let plain: String = text.chars().filter(|c| *c != ' ').collect();
        let Some((operands, output)) = plain.split_once("->") else {
            return Err("has no `->`".into());
        };
        let operands = operands.split(',').map(|letters| letters.chars().collect());
        let equation = Self {
            operands: operands.collect(),
            output: output.chars().collect(),
        };
        let all = equation.operands.iter().chain([&equation.output]);
        for letters in all {
            if let Some(other) = letters.iter().find(|c| !c.is_ascii_alphabetic()) {
                return Err(format!("has `{other}`, which is not a letter"));
            }
            if letters.is_empty() {
                return Err("has an operand or output without axes".into());
            }
            let repeated = (1..letters.len()).find(|at| letters[..*at].contains(&letters[*at]));
            if let Some(at) = repeated {
                return Err(format!("has `{}` twice in one operand", letters[at]));
            }
        }
        let mut output = equation.output.iter();
        match output.find(|letter| !equation.operands.concat().contains(letter)) {
            Some(letter) => Err(format!("has `{letter}` only in the output")),
            None => Ok(equation),
        }
    }

    /// The equation with the axis of the batch before all others.
    pub fn with_batch(&self) -> String {
        let used = self.operands.concat();
        let mut free = ('a'..='z').rev().chain('A'..='Z');
        let batch = free.find(|letter| !used.contains(letter)).unwrap_or('z');
        let text = |letters: &[char]| [&[batch], letters].concat().into_iter().collect::<String>();
        let operands: Vec<String> = self.operands.iter().map(|letters| text(letters)).collect();
        format!("{}->{}", operands.join(","), text(&self.output))
    }

    /// The sizes of the letters, in their order in the operands. The error is the letter and both of its sizes.
    fn sizes(&self, inputs: &[Input]) -> Result<Vec<(char, usize)>, (char, usize, usize)> {
        let mut sizes: Vec<(char, usize)> = Vec::new();
        for (letters, input) in self.operands.iter().zip(inputs) {
            for (letter, size) in letters.iter().zip(&input.shape.dims) {
                match sizes.iter().find(|(known, _)| known == letter) {
                    Some((_, known)) if known != size => return Err((*letter, *known, *size)),
                    Some(_) => {}
                    None => sizes.push((*letter, *size)),
                }
            }
        }
        Ok(sizes)
    }
}

/// The sizes of all letters of an equation that was checked.
pub fn sizes(equation: &str, inputs: &[Input]) -> Dims {
    let sizes = Equation::parse(equation)
        .ok()
        .and_then(|e| e.sizes(inputs).ok());
    let sizes = sizes.unwrap_or_default().into_iter();
    sizes.map(|(_, size)| size).collect()
}

/// The shape of the output of an equation.
pub fn summed(equation: &str, inputs: &[Input]) -> Result<Dims, Mismatch> {
    const EXAMPLE: &str = "write a letter for each axis without the batch, such as `equation = \"qd,kd->qk\"` for two inputs";
    let parsed = match Equation::parse(equation) {
        Ok(parsed) => parsed,
        Err(reason) => {
            return wrong(
                "equation",
                format!("has the equation `{equation}`, which {reason}"),
                EXAMPLE,
            );
        }
    };
    let (named, num) = (parsed.operands.len(), inputs.len());
    if named != num {
        return wrong(
            "equation",
            format!("has the equation `{equation}` for {named} inputs, found {num}"),
            if named > 2 {
                "use several layers: each takes one or two inputs".to_owned()
            } else {
                format!("list {named} in `inputs`")
            },
        );
    }
    for (letters, input) in parsed.operands.iter().zip(inputs) {
        let (dims, text) = (&input.shape.dims, letters.iter().collect::<String>());
        if letters.len() != dims.len() {
            return wrong(
                "equation",
                format!(
                    "names {} axes in `{text}`, but that input is {dims:?}",
                    letters.len()
                ),
                EXAMPLE,
            );
        }
    }
    match parsed.sizes(inputs) {
        Ok(sizes) => {
            let size = |letter: &char| {
                let found = sizes.iter().find(|(known, _)| known == letter);
                found.map_or(1, |(_, size)| *size)
            };
            Ok(parsed.output.iter().map(size).collect())
        }
        Err((letter, a, b)) => wrong(
            "equation",
            format!("has axes of {a} and {b} values for the letter `{letter}`"),
            "use different letters for axes of different sizes, or other inputs",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equations_are_read_or_refused_with_a_reason() {
        let read = Equation::parse("q d, kd -> qk").unwrap();
        assert_eq!(read.operands, [vec!['q', 'd'], vec!['k', 'd']]);
        assert_eq!(read.with_batch(), "zqd,zkd->zqk");
        assert_eq!(Equation::parse("az->za").unwrap().with_batch(), "yaz->yza");
        for (text, reason) in [
            ("ab", "has no `->`"),
            ("a1->a", "has `1`, which is not a letter"),
            ("a,->a", "has an operand or output without axes"),
            ("ab->", "has an operand or output without axes"),
            ("aa->a", "has `a` twice in one operand"),
            ("ab->bb", "has `b` twice in one operand"),
            ("ab->abc", "has `c` only in the output"),
        ] {
            assert_eq!(Equation::parse(text).unwrap_err(), reason, "{text}");
        }
    }
}
