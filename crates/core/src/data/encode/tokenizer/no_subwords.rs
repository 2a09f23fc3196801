//! Without the library for subwords, as in a browser: their tokenizers are refused.

use std::ops::Range;
use std::path::Path;

use crate::data::DataError;

/// There are none.
#[derive(Clone, Debug)]
pub enum Subwords {}

const REASON: &str = "consists of subwords, which this build of runner cannot read";

fn refused() -> DataError {
    DataError::new(format!("the tokenizer {REASON}"))
        .key("data.tokens.tokenizer")
        .help("use \"char\", \"byte\" or \"word\", or the command line")
}

impl Subwords {
    pub fn read(_: &Path) -> Result<Self, DataError> {
        Err(refused())
    }

    pub fn parse(_: &str) -> Result<Self, String> {
        Err(REASON.to_owned())
    }

    pub fn bpe<'a>(_: impl Iterator<Item = &'a str>, _: usize) -> Result<Self, DataError> {
        Err(refused())
    }

    pub fn wordpiece<'a>(_: impl Iterator<Item = &'a str>, _: usize) -> Result<Self, DataError> {
        Err(refused())
    }

    pub fn to_json(&self) -> String {
        match *self {}
    }

    pub fn vocabulary(&self) -> usize {
        match *self {}
    }

    pub fn padding(&self) -> Option<i32> {
        match *self {}
    }

    pub fn end(&self) -> Option<i32> {
        match *self {}
    }

    pub fn unknown(&self) -> Option<i32> {
        match *self {}
    }

    pub fn mask(&self) -> Option<i32> {
        match *self {}
    }

    pub fn name(&self, _: i32) -> Option<String> {
        match *self {}
    }

    pub fn ordinary(&self) -> &[i32] {
        match *self {}
    }

    pub fn token(&self, _: &str) -> Option<i32> {
        match *self {}
    }

    pub fn has(&self, _: i32) -> bool {
        match *self {}
    }

    pub fn encode(&self, _: &str) -> Result<Vec<i32>, DataError> {
        match *self {}
    }

    pub fn encode_with_places(&self, _: &str) -> Result<Vec<(i32, Range<usize>)>, DataError> {
        match *self {}
    }

    pub fn encode_item(&self, _: &str, _: usize) -> Result<Vec<i32>, DataError> {
        match *self {}
    }

    pub fn decode(&self, _: &[i32]) -> String {
        match *self {}
    }
}
