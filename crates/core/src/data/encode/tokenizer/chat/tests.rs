use std::fs;

use super::*;

fn renderer(text: &str) -> Result<Renderer, String> {
    let special = [("bos_token", "<s>"), ("eos_token", "</s>")];
    let special = special.map(|(name, token)| (name.to_owned(), token.to_owned()));
    let template = ChatTemplate {
        text: text.to_owned(),
        tools: None,
        special: special.into(),
        ends: Vec::new(),
    };
    // 2001-09-09 01:46:40, a Sunday.
    Renderer::new(&template, Some(Now(1_000_000_000)))
}

fn conversation() -> Conversation {
    let text = r#"[{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Ho"},
        {"role": "user", "content": "Why?"}, {"role": "assistant", "content": "So."}]"#;
    Conversation::parse(text).unwrap()
}

fn render(text: &str) -> Result<String, String> {
    renderer(text)?.render(&conversation(), false)
}

/// What the assistant wrote.
fn assistant(text: &str) -> Result<Vec<String>, String> {
    let found = renderer(text)?.marked(&conversation());
    let found = found.map_err(|reason| reason.to_string())?;
    let parts = found.assistant.into_iter();
    Ok(parts.map(|at| found.text[at].to_owned()).collect())
}

#[test]
fn the_turns_of_the_assistant_are_what_follows_their_prompts() {
    let turns = "{% for m in messages %}<{{ m.role }}>{{ m.content }}{{ eos_token }}{% endfor %}{% if add_generation_prompt %}<assistant>{% endif %}";
    assert_eq!(assistant(turns).unwrap(), ["Ho</s>", "So.</s>"]);
    let blocks = "{% for m in messages %}[{% if m.role == 'assistant' %}{% generation %}{{ m.content }}{% endgeneration %}{% else %}{{ m.content }}{% endif %}]{% endfor %}";
    assert_eq!(assistant(blocks).unwrap(), ["Ho", "So."]);
    // What the template writes before the first message is not the assistant's, even if that is.
    let text = r#"[{"role": "assistant", "content": "Hello"}, {"role": "user", "content": "Hi"}]"#;
    let first = Conversation::parse(text).unwrap();
    let system = "{% if messages[0].role != 'system' %}<system>Help.{% endif %}".to_owned() + turns;
    for template in [turns, &system] {
        let found = renderer(template).unwrap().marked(&first).unwrap();
        let parts: Vec<_> = found
            .assistant
            .iter()
            .map(|at| &found.text[at.clone()])
            .collect();
        assert_eq!(parts, ["Hello</s>"], "{template}");
    }
    let last = "{% for m in messages %}{{ m.content if loop.last else m.role }}{% endfor %}";
    let reason = assistant(last).unwrap_err();
    assert!(
        reason.ends_with("at message 2, so that the assistant's turns cannot be told apart"),
        "{reason}"
    );
    // Texts cannot pretend to be the assistant's.
    let text = "[{\"role\": \"user\", \"content\": \"a\u{fdd0}b\u{fdd0}c\"}, {\"role\": \"assistant\", \"content\": \"d\"}]";
    let found = renderer(blocks)
        .unwrap()
        .marked(&Conversation::parse(text).unwrap())
        .unwrap();
    assert_eq!(found.text, "[a\u{fdd0}b\u{fdd0}c][d]");
    let parts: Vec<&str> = (found.assistant.iter())
        .map(|at| &found.text[at.clone()])
        .collect();
    assert_eq!(parts, ["d"]);
}

#[test]
fn dates_are_those_of_the_moment() {
    let text = "{{ strftime_now('%Y-%m-%d %H:%M:%S %j %A %d %b %y %B %-d %e %I %p %%') }}";
    let expected = "2001-09-09 01:46:40 252 Sunday 09 Sep 01 September 9  9 01 AM %";
    assert_eq!(render(text).unwrap(), expected);
    assert!(
        render("{{ strftime_now('%Q') }}")
            .unwrap_err()
            .contains("does not know `%Q`")
    );
    let template = ChatTemplate {
        text: "{{ strftime_now('%Y') if strftime_now is defined else 'never' }}".into(),
        tools: None,
        special: Default::default(),
        ends: Vec::new(),
    };
    let of = |text: &str| {
        let template = ChatTemplate {
            text: text.into(),
            ..template.clone()
        };
        Renderer::new(&template, None)
            .unwrap()
            .render(&conversation(), false)
    };
    assert_eq!(of(&template.text).unwrap(), "never");
    let reason = of("{{ strftime_now('%Y') }}").unwrap_err();
    assert_eq!(
        reason,
        "writes the date in line 1, so its text would change every day"
    );
    for (seconds, expected) in [
        (951_782_400, "2000-02-29 060 2"),
        (-1, "1969-12-31 365 3"),
        (4_107_542_400, "2100-03-01 060 1"),
    ] {
        let found = python::strftime(Now(seconds), "%F %j %u").unwrap();
        assert_eq!(found, expected);
    }
}

#[test]
fn hostile_templates_are_bounded_and_refused() {
    let doubling = "{% set ns = namespace(x=[1]) %}{% for a in range(64) %}{% set ns.x = [ns.x, ns.x] %}{% endfor %}{{ ns.x }}";
    let nested = {
        let (mut opened, mut closed) = ("{% for a in [[1,1]] %}".to_owned(), String::new());
        for at in 0..40 {
            let (new, old) = if at % 2 == 0 { ("b", "a") } else { ("a", "b") };
            opened += &format!("{{% for {new} in [[{old},{old}]] %}}");
            closed += "{% endfor %}";
        }
        format!("{opened}{{{{ b }}}}{closed}{{% endfor %}}")
    };
    let sets =
        "{% set x = [1] %}".to_owned() + &"{% set x = [x, x] %}".repeat(64) + "{{ x | tojson }}";
    let sums =
        "{% set x = [1] %}".to_owned() + &"{% set x = x + x %}".repeat(64) + "{{ x | length }}";
    let texts = "{% set ns = namespace(x='xx') %}{% for a in range(64) %}{% set ns.x = ns.x ~ ns.x %}{% endfor %}{{ ns.x | length }}";
    let chain = |part: &str| format!("{{{{ a{} }}}}", part.repeat(50_000));
    let cases = [
        "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}".to_owned(),
        "{% for a in range(99999) %}{{ 'x' * 1000 }}{% endfor %}".to_owned(),
        doubling.to_owned(),
        nested,
        sets,
        sums,
        texts.to_owned(),
        "{% set ns = namespace() %}{% set ns.ns = [ns] %}{{ ns }}".to_owned(),
        "{% set ns = namespace() %}{% set ns.ns = ns %}{{ ns }}".to_owned(),
        "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}".to_owned(),
        "{% macro f(x, n) %}{{ f([x,x,x,x,x,x,x,x], n-1) if n > 0 else x }}{% endmacro %}{{ f(1, 9) }}".to_owned(),
        "{{ 'x' * 1000000000000 }}".to_owned(),
        "{{ '%999999999d' | format(1) }}".to_owned(),
        "{{ '{:999999999}'.format(1) }}".to_owned(),
        "{{ 'a\na' | indent(999999999) }}".to_owned(),
        "{{ ('a' * 100000).replace('', 'b' * 100000) | length }}".to_owned(),
        "{{ ('a,' * 1000000).split(',') | join('x' * 1000000) | length }}".to_owned(),
        "{{ range(0, 1000000000000) | list }}".to_owned(),
        format!("{{{{ {}1{} }}}}", "(".repeat(50_000), ")".repeat(50_000)),
        format!("{}{}", "{% if a %}".repeat(50_000), "{% endif %}".repeat(50_000)),
        format!("{{% if a %}}{}{{% endif %}}", "{% elif a %}".repeat(50_000)),
        chain(".b"),
        chain("+1"),
        chain("|string"),
        "{% include 'chat_template' %}".to_owned(),
        "{{ raise_exception('no') }}".to_owned(),
        "x".repeat(2 << 20),
    ];
    for case in &cases {
        let found = render(case);
        assert!(found.is_err(), "{:.200}: {found:.200?}", case);
    }
}

#[test]
fn templates_are_found_in_folders_of_hubs() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let tokenizer = path("tokenizer.json");
    let read = || {
        let files = files_of(None, Some(&tokenizer));
        ChatTemplate::read(&files, |text| (text == "</s>").then_some(2))
    };
    assert_eq!(read().unwrap(), None);
    let config = r#"{"bos_token": null, "eos_token": {"content": "</s>"}, "chat_template": [{"name": "rag", "template": "r"}, {"name": "default", "template": "d"}]}"#;
    fs::write(path(CONFIG), config).unwrap();
    let found = read().unwrap().unwrap();
    assert_eq!((found.text.as_str(), &found.ends[..]), ("d", &[2][..]));
    assert_eq!(
        found.special.into_iter().collect::<Vec<_>>(),
        [("eos_token".to_owned(), "</s>".to_owned())]
    );
    fs::write(path(TEMPLATE), "own").unwrap();
    fs::write(path("special_tokens_map.json"), r#"{"bos_token": "<s>"}"#).unwrap();
    fs::write(path("config.json"), r#"{"eos_token_id": 7}"#).unwrap();
    assert_eq!(read().unwrap().unwrap().ends, [2, 7]);
    fs::write(
        path("generation_config.json"),
        r#"{"eos_token_id": [9, 2]}"#,
    )
    .unwrap();
    let found = read().unwrap().unwrap();
    assert_eq!((found.text.as_str(), &found.ends[..]), ("own", &[2, 9][..]));
    assert_eq!(found.special["bos_token"], "<s>");
    fs::write(path(CONFIG), "[").unwrap();
    assert!(read().unwrap_err().message.contains("is not JSON"));
}

/// As `apply_chat_template`: a template for tools is that of conversations with tools, and tokens with names of a model's
/// own are known to both.
#[test]
fn conversations_with_tools_may_have_their_own_template() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let config = serde_json::json!({
        "chat_template": [
            { "name": "default", "template": "{{ turn_token }}{{ messages[0].content }}" },
            { "name": "tool_use", "template": "{{ tools[0] }}:{{ turn_token }}{{ messages[0].content }}" },
        ],
        "extra_special_tokens": { "turn_token": "<t>", "messages": "no" },
    });
    fs::write(folder.join(CONFIG), config.to_string()).unwrap();
    let with_tools = r#"{"messages": [{"role": "user", "content": "Hi"}], "tools": ["add"]}"#;
    let of = || {
        let files = files_of(None, Some(&folder.join("tokenizer.json")));
        let template = ChatTemplate::read(&files, |_| None).unwrap().unwrap();
        let renderer = Renderer::new(&template, None).unwrap();
        [with_tools, r#"[{"role": "user", "content": "Hi"}]"#].map(|text| {
            let conversation = Conversation::parse(text).unwrap();
            renderer.render(&conversation, false).unwrap()
        })
    };
    assert_eq!(of(), ["add:<t>Hi", "<t>Hi"]);
    let more = folder.join("additional_chat_templates");
    fs::create_dir(&more).unwrap();
    fs::write(
        more.join("tool_use.jinja"),
        "tools: {{ messages[0].content }}",
    )
    .unwrap();
    fs::write(folder.join(TEMPLATE), "{{ messages[0].content }}").unwrap();
    assert_eq!(of(), ["tools: Hi", "Hi"]);
}
