//! Messages about rows name the line of the file that the row begins in, whatever is above it.

use std::fs;

use super::support::{folder_with, run};

const SPEC: &str = "data = { type = 'csv', path = 'rows.csv', target = 'y', comment = '#' }\n\
    model = { type = 'mlp', hidden = [4] }\noptimizer = { type = 'adam', learning_rate = 1e-2 }\n\
    train = { epochs = 1 }\n";

/// Files whose value `oops` begins a row.
const FILES: [&str; 10] = [
    "x,s,y\n1,p,a\noops,q,b\n2,p,a\n",
    "x,s,y\r\n1,p,a\r\noops,q,b\r\n2,p,a\r\n",
    "x,s,y\n\n\n1,p,a\n\n\noops,q,b\n",
    "x,s,y\r\n\r\n1,p,a\r\n\r\noops,q,b\r\n",
    "x,s,y\n1,\"p\n\n\",a\noops,q,b\n",
    "x,s,y\r\n1,\"p\r\n\",a\r\n2,\"\r\nq\",\"b\r\n\"\r\noops,q,b",
    "# above\n# it\nx,s,y\n1,p,a\n# between\n\n# them\noops,q,b\n",
    "x,s,y\n1,p,a\noops,q,b",
    "\n\nx,s,y\noops,\"q\n\",b\n",
    "x,s,y\n1,\"p\n\",a\n\n# a comment\noops,\"q\n\",b\n2,q,b\n",
];

fn line_of_oops(text: &str) -> usize {
    let at = text.find("oops").unwrap();
    text[..at].matches('\n').count() + 1
}

#[test]
fn new_data_is_refused_and_skipped_by_line() {
    let rows: String = (0..40)
        .map(|at| format!("{at},{},{}\n", ["p", "q"][at % 2], ["a", "b"][at % 2]))
        .collect();
    let folder = folder_with(SPEC);
    let folder = folder.path();
    fs::write(folder.join("rows.csv"), format!("x,s,y\n{rows}")).unwrap();
    let (code, _, said) = run(folder, &["run", "spec.toml", "--quiet"]);
    assert_eq!(code, 0, "{said}");
    // The last one is longer than what is read at once.
    let row = |at: usize| format!("{at},\"p\r\n\",a\r\n\r\n");
    let long: String = (0..9000).map(row).collect();
    let long = format!("x,s,y\r\n{long}oops,q,b\r\n");
    for text in FILES.into_iter().chain([long.as_str()]) {
        let start = &text[..text.len().min(80)];
        fs::write(folder.join("new.csv"), text).unwrap();
        let place = format!("`new.csv:{}`", line_of_oops(text));
        let predict = ["predict", "results/spec", "--data", "new.csv"];
        let (code, _, said) = run(folder, &predict);
        assert!(
            code == 2 && said.contains(&place),
            "{start:?}: {place}: {said}"
        );
        let has_others = text.lines().any(|line| line.starts_with(['1', '2']));
        let (code, _, said) = run(folder, &[&predict[..], &["--on-bad-item", "skip"]].concat());
        assert!(said.contains(&place), "{start:?}: {place}: {said}");
        assert_eq!(code, if has_others { 0 } else { 2 }, "{start:?}: {said}");
    }
}
