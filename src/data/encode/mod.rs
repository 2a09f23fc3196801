//! From records to what a network is given: fitted on the train split alone.

pub mod augment;
pub mod tokenizer;
