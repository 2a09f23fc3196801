use super::cut::PIECE;
use super::subwords::Subwords;
use super::*;

fn spec(tokenizer: TokenizerKind) -> TokensSpec {
    TokensSpec {
        tokenizer,
        ..TokensSpec::default()
    }
}

fn build(spec: &TokensSpec, texts: &[&str]) -> Tokenizer {
    Tokenizer::build(spec, texts.iter().copied()).unwrap()
}

/// A text of about this many bytes with letters of one, two, three and four bytes.
fn long(len: usize) -> String {
    let mut text = String::new();
    let mut seed = 7_u64;
    while text.len() < len {
        seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1);
        let word = [
            "The", "sea", "täglich", "語", "don't", "🦀", "3,14", "end.\n",
        ];
        text.push_str(word[(seed >> 33) as usize % word.len()]);
        text.push(' ');
        if seed >> 60 == 0 {
            text.push_str(&format!("w{} ", (seed >> 40) % 5000));
        }
    }
    text
}

#[test]
fn characters_are_numbered_by_frequency_then_as_text() {
    let chars = build(&spec(TokenizerKind::Char), &["banana", "cb"]);
    assert_eq!(chars.tokens, ["a", "b", "n", "c"]);
    assert_eq!(chars.vocabulary(), 6);
    assert_eq!(chars.encode("nab\nc").unwrap(), [4, 2, 3, UNKNOWN, 5]);
    assert_eq!(
        chars.decode(&[4, 2, UNKNOWN, 3, PADDING, 99, -7, i32::MIN]),
        "na�b���"
    );
    assert_eq!(chars.encode("").unwrap(), [0; 0]);
}

#[test]
fn bytes_need_no_texts() {
    let bytes = build(&spec(TokenizerKind::Byte), &[]);
    assert_eq!((bytes.vocabulary(), bytes.tokens.len()), (258, 0));
    assert_eq!(bytes.encode("aä").unwrap(), [99, 0xc3 + 2, 0xa4 + 2]);
    assert_eq!(bytes.decode(&bytes.encode("täg\0 語").unwrap()), "täg\0 語");
    assert_eq!(bytes.decode(&[99, 0xc3 + 2, 258, -1, 0]), "a���");
    let small = TokensSpec {
        lowercase: true,
        max_vocabulary: 3,
        ..spec(TokenizerKind::Byte)
    };
    assert_eq!(build(&small, &["X"]).decode(&[67]), "A");
    assert_eq!(build(&small, &["X"]).encode("A").unwrap(), [99]);
}

#[test]
fn words_are_runs_of_letters_and_digits_and_single_signs() {
    let cut = |text| words(text).collect::<Vec<_>>();
    assert_eq!(
        cut("Don't 'stop', täglich—3.5 % 語\r\n\n  l’été x'"),
        [
            "Don't",
            "'",
            "stop",
            "'",
            ",",
            "täglich",
            "—",
            "3",
            ".",
            "5",
            "%",
            "語",
            "\n",
            "\n",
            "l’été",
            "x",
            "'"
        ]
    );
    assert_eq!(cut("e\u{301}te\u{301}!"), ["e\u{301}te\u{301}", "!"]);
    assert_eq!(cut(" \t\u{a0}"), [""; 0]);
    let tokenizer = build(&spec(TokenizerKind::Word), &["The cat, the\ndog (a dog)."]);
    let text = "The dog,\nthe cat (a dog).";
    assert_eq!(tokenizer.decode(&tokenizer.encode(text).unwrap()), text);
    assert_eq!(
        tokenizer.encode("a bird").unwrap(),
        [tokenizer.encode("a").unwrap()[0], UNKNOWN]
    );
    assert_eq!(tokenizer.tokens[0], "dog");
}

#[test]
fn the_most_frequent_are_kept_and_capitals_are_made_small() {
    let few = TokensSpec {
        max_vocabulary: 4,
        lowercase: true,
        ..spec(TokenizerKind::Word)
    };
    let tokenizer = build(&few, &["b a A", "B c d B"]);
    assert_eq!(tokenizer.tokens, ["b", "a"]);
    assert_eq!(tokenizer.vocabulary(), 4);
    assert_eq!(tokenizer.encode("A b C").unwrap(), [3, 2, UNKNOWN]);
    let chars = TokensSpec {
        tokenizer: TokenizerKind::Char,
        ..few
    };
    assert_eq!(build(&chars, &["ÄäBbB a"]).tokens, ["b", "ä"]);
}

#[test]
fn a_saved_tokenizer_is_the_same() {
    for kind in [
        TokenizerKind::Char,
        TokenizerKind::Byte,
        TokenizerKind::Word,
    ] {
        let tokenizer = build(&spec(kind), &["Das \"Öl\", 語 🦀\n."]);
        let saved = serde_json::to_string(&tokenizer).unwrap();
        let read: Tokenizer = serde_json::from_str(&saved).unwrap();
        assert_eq!(read, tokenizer);
        let text = "Das 語 Öl fehlt.";
        assert_eq!(read.encode(text).unwrap(), tokenizer.encode(text).unwrap());
        assert!(!saved.contains("lookup"), "{saved}");
    }
}

/// Cuts fall into characters of several bytes, words and gaps here.
#[test]
fn pieces_and_threads_do_not_show() {
    let text = long(5 * PIECE / 2);
    for kind in [
        TokenizerKind::Char,
        TokenizerKind::Byte,
        TokenizerKind::Word,
    ] {
        assert_eq!(pieces(kind, &text).collect::<String>(), text);
        assert!(pieces(kind, &text).count() > 1);
        let spec = spec(kind);
        let tokenizer = build(&spec, &[&text]);
        let alone = rayon::ThreadPoolBuilder::new()
            .num_threads(1)
            .build()
            .unwrap();
        let (one, tokens) = alone.install(|| {
            let one = build(&spec, &[&text]);
            let tokens = one.encode(&text).unwrap();
            (one, tokens)
        });
        assert_eq!(one, tokenizer);
        assert_eq!(tokenizer.encode(&text).unwrap(), tokens);
        assert_eq!(tokenizer.encode_piece(&text), tokens);
        assert!(!tokens.contains(&UNKNOWN) && !tokens.contains(&PADDING));
    }
    assert_eq!(
        pieces(TokenizerKind::Word, &"x".repeat(3 * PIECE)).count(),
        1
    );
}

/// A text of verse-like lines with repeated words.
fn verse(num: usize) -> String {
    let mut text = String::new();
    for at in 0..num {
        text.push_str(&format!(
            "The harbour sleeps, the lanterns {} the täglich tide;\nnumber{} 語🦀 don't\n",
            ["burn", "sway", "turn"][at % 3],
            at % 7
        ));
    }
    text
}

#[test]
fn trained_subwords_are_the_same_in_any_pool_and_after_saving() {
    let text = verse(2000);
    assert!(pieces(TokenizerKind::Bpe, &text).count() > 1);
    for kind in [TokenizerKind::Bpe, TokenizerKind::Wordpiece] {
        let spec = TokensSpec {
            max_vocabulary: 400,
            ..spec(kind)
        };
        let tokenizer = build(&spec, &[&text, "sleeps"]);
        let alone = rayon::ThreadPoolBuilder::new().num_threads(1).build();
        let one = alone.unwrap().install(|| build(&spec, &["sleeps", &text]));
        assert_eq!(one, tokenizer);
        let saved = serde_json::to_string(&tokenizer).unwrap();
        let read: Tokenizer = serde_json::from_str(&saved).unwrap();
        assert_eq!(read, tokenizer);
        let tokens = tokenizer.encode(&text).unwrap();
        assert_eq!(read.encode(&text).unwrap(), tokens);
        assert!(tokenizer.vocabulary() <= 400 && tokens.len() < text.len() / 3);
        let shown = tokenizer.decode(&tokens);
        if kind == TokenizerKind::Bpe {
            assert_eq!(shown, text);
        } else {
            assert!(
                shown.starts_with("the harbour sleeps, the lanterns burn"),
                "{}",
                &shown[..80]
            );
        }
    }
}

#[test]
fn items_of_subwords_have_the_special_tokens_of_the_tokenizer() {
    let spec = TokensSpec {
        max_vocabulary: 400,
        ..spec(TokenizerKind::Wordpiece)
    };
    let tokenizer = build(&spec, &[&verse(50)]);
    let [cls, sep] = ["[CLS]", "[SEP]"].map(|name| tokenizer.token(name).unwrap());
    let whole = tokenizer.encode_item("the harbour", 6);
    assert_eq!((whole[0], whole[3], &whole[4..]), (cls, sep, &[0, 0][..]));
    // A truncated text still ends with its special token.
    let cut = tokenizer.encode_item("the harbour sleeps", 4);
    assert_eq!((cut.len(), cut[0], cut[3]), (4, cls, sep));
    assert_eq!(tokenizer.encode_item("", 3), [cls, sep, 0]);
    assert_eq!(tokenizer.encode_item("the", 1).len(), 1);
    assert_eq!(tokenizer.decode(&whole), "the harbour");
    assert!(!tokenizer.is_text(0) && !tokenizer.is_text(1) && tokenizer.is_text(whole[1]));
}

#[test]
fn a_separator_is_a_token_of_any_tokenizer() {
    let with = |kind, separator: &str| TokensSpec {
        separator: Some(separator.into()),
        ..spec(kind)
    };
    let bpe = build(&with(TokenizerKind::Bpe, "<eos>"), &["some text"]);
    assert_eq!(bpe.separator(), Some(2));
    assert!(bpe.is_text(2));
    let char = build(&with(TokenizerKind::Char, "\n"), &["some\ntext"]);
    assert_eq!(char.decode(&[char.separator().unwrap()]), "\n");
    for (kind, separator) in [(TokenizerKind::Bpe, "<end>"), (TokenizerKind::Char, "me")] {
        let error = Tokenizer::build(&with(kind, separator), ["some text"].into_iter());
        let error = error.unwrap_err();
        assert_eq!(
            error.message,
            format!("the separator `{separator}` is not a token")
        );
    }
}

/// Files that are no tokenizer, and one whose tokens are random.
#[test]
fn wrong_files_of_tokenizers_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tokenizer.json");
    let spec = TokensSpec {
        path: vec![path.display().to_string()],
        ..spec(TokenizerKind::File)
    };
    let refused = |content: &[u8]| {
        std::fs::write(&path, content).unwrap();
        let error = Tokenizer::build(&spec, std::iter::empty()).unwrap_err();
        assert_eq!(error.key, "data.tokens.path");
        error.message.replace(&path.display().to_string(), "PATH")
    };
    let trained = build(&self::spec(TokenizerKind::Bpe), &["some text, some text"]);
    let trained = trained.subwords().unwrap();
    let random = trained.replace("\"dropout\":null", "\"dropout\":0.1");
    assert_ne!(trained, random);
    let messages = [
        refused(b"\xff\xfe"),
        refused(b""),
        refused(b"[1, 2]"),
        refused(b"{\"model\": {\"type\": \"BPE\", \"vocab\": 3, \"merges\": []}}"),
        refused(b"{\"model\": {\"type\": \"WordLevel\", \"vocab\": {\"a\": 4294967295}, \"unk_token\": \"a\"}}"),
        refused(random.as_bytes()),
        refused(&trained.as_bytes()[..trained.len() / 2]),
    ];
    insta::assert_snapshot!(messages.join("\n"));
    std::fs::write(&path, &trained).unwrap();
    let read = Tokenizer::build(&spec, std::iter::empty()).unwrap();
    assert_eq!(read.subwords().unwrap(), trained);
    std::fs::remove_file(&path).unwrap();
    assert!(Tokenizer::build(&spec, std::iter::empty()).is_err());
}

/// Files with parts that do not fit each other, or that the library does not have.
#[test]
fn odd_contents_of_tokenizers_are_refused_with_their_part() {
    let bpe = r#"{"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": ["a b"]}"#;
    let with = |model: &str, more: &str| format!(r#"{{"model": {model}{more}}}"#);
    let around = |token: u32| {
        let around = r#", "post_processor": {"type": "TemplateProcessing",
            "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
            "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 0}}],
            "special_tokens": {"<s>": {"id": "<s>", "ids": [N], "tokens": ["<s>"]}}}"#;
        with(bpe, &around.replacen("N", &token.to_string(), 1))
    };
    let padded = |token: u32| {
        let padding = r#", "padding": {"strategy": "BatchLongest", "direction": "Right", "pad_to_multiple_of": null,
            "pad_id": N, "pad_type_id": 0, "pad_token": "<pad>"}"#;
        with(bpe, &padding.replacen("N", &token.to_string(), 1))
    };
    for right in [with(bpe, ""), around(2), padded(2)] {
        assert!(Subwords::parse(&right).is_ok(), "{right}");
    }
    let wrong = [
        ("a model", with(r#"{"type": "Tiktoken", "vocab": {}}"#, "")),
        ("no type", with(r#"{"words": {}}"#, "")),
        (
            "no vocabulary",
            with(r#"{"type": "BPE", "merges": []}"#, ""),
        ),
        (
            "no tokens",
            with(
                r#"{"type": "WordLevel", "vocab": {}, "unk_token": "?"}"#,
                "",
            ),
        ),
        ("a merge", with(&bpe.replacen("a b", "a c", 1), "")),
        ("a merged token", with(&bpe.replacen("a b", "b a", 1), "")),
        (
            "an unknown token",
            with(
                r#"{"type": "Unigram", "vocab": [["a", -1.0]], "unk_id": 7}"#,
                "",
            ),
        ),
        (
            "a normalizer",
            with(bpe, r#", "normalizer": {"type": "Rot13"}"#),
        ),
        (
            "a key of a normalizer",
            with(
                bpe,
                r#", "normalizer": {"type": "Replace", "content": "b"}"#,
            ),
        ),
        (
            "one of several",
            with(
                bpe,
                r#", "pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": "Syllables"}]}"#,
            ),
        ),
        (
            "an expression",
            with(
                bpe,
                r#", "pre_tokenizer": {"type": "Split", "pattern": {"Regex": "("}, "behavior": "Isolated", "invert": false}"#,
            ),
        ),
        (
            "a decoder",
            with(bpe, r#", "decoder": {"type": "Telegraph"}"#),
        ),
        (
            "a post-processor",
            with(bpe, r#", "post_processor": {"type": "Stamp"}"#),
        ),
        (
            "an added token",
            with(
                bpe,
                r#", "added_tokens": [{"id": "three", "content": "<s>"}]"#,
            ),
        ),
        ("around a text", around(3)),
        ("padding", padded(70)),
    ];
    let messages = wrong.map(|(name, text)| match Subwords::parse(&text) {
        Ok(read) => panic!("{name}: {read:?}"),
        Err(reason) => format!("{name}: the tokenizer {reason}"),
    });
    insta::assert_snapshot!(messages.join("\n"));
}

/// The library gives added tokens the next numbers, whatever the file says, as transformers does.
#[test]
fn numbers_of_added_tokens_are_within_the_vocabulary() {
    let text = r#"{"model": {"type": "WordLevel", "vocab": {"?": 0, "sea": 1}, "unk_token": "?"},
        "pre_tokenizer": {"type": "Whitespace"},
        "added_tokens": [{"id": 900, "content": "<s>", "single_word": false, "lstrip": false, "rstrip": false,
            "normalized": false, "special": true}]}"#;
    let read = Subwords::parse(text).unwrap();
    let tokens = read.encode("sea <s> cat").unwrap();
    assert!(tokens.iter().all(|token| read.has(*token)), "{tokens:?}");
    assert_eq!(tokens[0], 1);
}

/// The tokens of a text stand for all of its bytes, also where one is a part of a character.
#[test]
fn tokens_have_the_bytes_of_their_text() {
    let texts = ["täglich 語 don't 🦀 täglich"];
    for kind in [TokenizerKind::Byte, TokenizerKind::Char, TokenizerKind::Bpe] {
        let tokenizer = build(&spec(kind), &texts);
        for text in ["é harbour".replace("é", "ä"), "🦀täg".into()] {
            let known = text
                .chars()
                .all(|c| kind != TokenizerKind::Char || texts[0].contains(c));
            let tokens = tokenizer.encode(&text).unwrap();
            let bytes: usize = tokens.iter().map(|token| tokenizer.num_bytes(*token)).sum();
            assert!(!known || bytes == text.len(), "{kind:?}: {bytes} of {text}");
        }
    }
}
