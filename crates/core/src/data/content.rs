//! Digests of data that is not in the user's files: embedded or generated.

use serde_json::json;
use sha2::{Digest, Sha256};

use super::{DataError, Inputs, Items, TargetValues, embedded, generate, hex, sha256_hex};
use crate::spec::data::ImageSize;
use crate::spec::generate::Generated;

/// Values per item that identify a generator.
const PROBED_VALUES: usize = 1 << 16;
/// Maximum number of items that identify a generator.
const PROBED_ITEMS: usize = 32;

/// The digest of the digits at a size.
pub fn of_digits(size: ImageSize) -> Result<String, DataError> {
    Ok(of_items(&embedded::digits(size)?))
}

/// The digest of the iris flowers.
pub fn of_iris() -> Result<String, DataError> {
    Ok(of_items(&embedded::iris()?))
}

/// The digest of the karate club.
pub fn of_karate_club() -> String {
    let (items, edges) = embedded::karate_club();
    sha256_hex(format!("{} {}", of_items(&items), edges.digest()).as_bytes())
}

/// The digest of the first items of a generator. Each item depends only on the seed and its index, so a generator of
/// other data generates other first items; generating all of them would take as long as training on them.
pub fn of_generated(generated: &Generated) -> String {
    let (input, _) = generate::plans(generated);
    let size = input.shape.iter().product::<usize>().max(1);
    let num = (PROBED_VALUES / size).clamp(1, PROBED_ITEMS);
    of_items(&generate::generate(&Generated {
        num_items: num.min(generated.num_items),
        ..generated.clone()
    }))
}

/// The digest of items, and of those of an official test split.
pub fn of_both(items: &Items, test: Option<&Items>) -> String {
    match test {
        None => of_items(items),
        Some(test) => sha256_hex(format!("{} {}", of_items(items), of_items(test)).as_bytes()),
    }
}

/// sha256 over the specs and content of items.
pub fn of_items(items: &Items) -> String {
    let Items {
        input,
        inputs,
        target,
        targets,
    } = items;
    let mut sum = Sha256::new();
    sum.update(json!([input, target, items.len()]).to_string());
    match inputs {
        Inputs::Bytes { bytes, scale } => {
            sum.update(scale.to_le_bytes());
            sum.update(bytes);
        }
        Inputs::Floats(values) => values.iter().for_each(|v| sum.update(v.to_le_bytes())),
        Inputs::Tokens(tokens) => tokens.iter().for_each(|t| sum.update(t.to_le_bytes())),
    }
    match targets {
        TargetValues::Classes(classes) => classes.iter().for_each(|c| sum.update(c.to_le_bytes())),
        TargetValues::Floats(values) => values.iter().for_each(|v| sum.update(v.to_le_bytes())),
        TargetValues::Doubles(values) => values.iter().for_each(|v| sum.update(v.to_le_bytes())),
    }
    hex(&sum.finalize())
}
