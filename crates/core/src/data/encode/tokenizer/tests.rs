use super::cut::PIECE;
use super::*;

fn spec(tokenizer: TokenizerKind) -> TokensSpec {
    TokensSpec {
        tokenizer,
        ..TokensSpec::default()
    }
}

fn build(spec: &TokensSpec, texts: &[&str]) -> Tokenizer {
    Tokenizer::build(spec, texts.iter().copied())
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
    assert_eq!(chars.encode("nab\nc"), [4, 2, 3, UNKNOWN, 5]);
    assert_eq!(
        chars.decode(&[4, 2, UNKNOWN, 3, PADDING, 99, -7, i32::MIN]),
        "na�b���"
    );
    assert_eq!(chars.encode(""), [0; 0]);
}

#[test]
fn bytes_need_no_texts() {
    let bytes = build(&spec(TokenizerKind::Byte), &[]);
    assert_eq!((bytes.vocabulary(), bytes.tokens.len()), (258, 0));
    assert_eq!(bytes.encode("aä"), [99, 0xc3 + 2, 0xa4 + 2]);
    assert_eq!(bytes.decode(&bytes.encode("täg\0 語")), "täg\0 語");
    assert_eq!(bytes.decode(&[99, 0xc3 + 2, 258, -1, 0]), "a���");
    let small = TokensSpec {
        lowercase: true,
        max_vocabulary: 3,
        ..spec(TokenizerKind::Byte)
    };
    assert_eq!(build(&small, &["X"]).decode(&[67]), "A");
    assert_eq!(build(&small, &["X"]).encode("A"), [99]);
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
    assert_eq!(tokenizer.decode(&tokenizer.encode(text)), text);
    assert_eq!(
        tokenizer.encode("a bird"),
        [tokenizer.encode("a")[0], UNKNOWN]
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
    assert_eq!(tokenizer.encode("A b C"), [3, 2, UNKNOWN]);
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
        assert_eq!(read.encode(text), tokenizer.encode(text));
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
            let tokens = one.encode(&text);
            (one, tokens)
        });
        assert_eq!(one, tokenizer);
        assert_eq!(tokenizer.encode(&text), tokens);
        assert_eq!(tokenizer.encode_piece(&text), tokens);
        assert!(!tokens.contains(&UNKNOWN) && !tokens.contains(&PADDING));
    }
    assert_eq!(
        pieces(TokenizerKind::Word, &"x".repeat(3 * PIECE)).count(),
        1
    );
}
