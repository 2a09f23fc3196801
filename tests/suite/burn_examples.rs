//! The experiments of `examples/burn` are valid over data in the layout that their heads state, and some of them train.

use std::fs;
use std::path::Path;

use image::{Rgb, RgbImage};

use super::support::{root, run};

/// Titles of news, and articles.
fn texts(num: usize) -> String {
    let words = [
        "harbour", "market", "team", "phone", "won", "fell", "new", "the",
    ];
    let text = |at: usize| {
        let words = (0..12).map(|place| words[(at * 5 + place * 3 + at * place) % words.len()]);
        words.collect::<Vec<_>>().join(" ")
    };
    (0..num)
        .map(|at| format!("{},{}\n", text(at), at % 4))
        .collect()
}

/// Writes a few items for an experiment.
fn write_items(name: &str, place: &Path) {
    let write = |path: &str, text: String| {
        let path = place.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    match name {
        "mnist" | "wgan" => {}
        "cifar10" => {
            for (part, shade) in [("train", 50), ("test", 60)] {
                for class in ["airplane", "automobile", "bird"] {
                    for at in 0..4_u8 {
                        let path = place.join(format!("cifar10/{part}/{class}/{at}.png"));
                        fs::create_dir_all(path.parent().unwrap()).unwrap();
                        let pixel = |x, y| Rgb([x as u8 * 7, y as u8 * 5, at * shade]);
                        RgbImage::from_fn(32, 32, pixel).save(path).unwrap();
                    }
                }
            }
        }
        "ag_news" => {
            write("ag_news/train.csv", format!("text,label\n{}", texts(40)));
            write("ag_news/test.csv", format!("text,label\n{}", texts(12)));
        }
        "db_pedia" => {
            for (part, num) in [("train", 400), ("test", 200)] {
                let rows = texts(num);
                let rows = rows.lines().map(|line| line.split(',').next().unwrap());
                let rows: Vec<&str> = ["content"].into_iter().chain(rows).collect();
                write(&format!("db_pedia/{part}.csv"), rows.join("\n") + "\n");
            }
        }
        "california_housing" => {
            let head = "MedInc,HouseAge,AveRooms,AveBedrms,Population,AveOccup,Latitude,Longitude,MedHouseVal\n";
            let row = |at: usize| {
                let values = (0..9).map(|column| ((at * (column + 3)) % 37) as f64 + 0.5);
                values
                    .map(|value| value.to_string())
                    .collect::<Vec<_>>()
                    .join(",")
                    + "\n"
            };
            for (part, num) in [("train", 300), ("validation", 40)] {
                let rows: String = (0..num).map(row).collect();
                write(&format!("housing/{part}.csv"), format!("{head}{rows}"));
            }
        }
        "modern_lstm" => {
            let head: Vec<String> = (0..11).map(|at| format!("x{at}")).collect();
            let row = |at: usize| {
                let mut numbers = vec![(at % 7) as f64 / 7.0, (at % 5) as f64 / 5.0];
                while numbers.len() < 12 {
                    numbers.push(numbers[numbers.len() - 1] + numbers[numbers.len() - 2] + 0.01);
                }
                let numbers: Vec<String> = numbers.iter().map(f64::to_string).collect();
                numbers.join(",") + "\n"
            };
            let rows: String = (0..100).map(row).collect();
            write("sequences.csv", format!("{},y\n{rows}", head.join(",")));
        }
        other => panic!("{other} has no items"),
    }
}

#[test]
fn experiments_for_burns_examples_are_valid() {
    let page = fs::read_to_string(root().join("docs/burn-examples.md")).unwrap();
    let mut num = 0;
    for entry in fs::read_dir(root().join("examples/burn")).unwrap() {
        let path = entry.unwrap().path();
        let file = path.file_name().unwrap().to_str().unwrap();
        let Some(name) = file.strip_suffix(".toml") else {
            continue;
        };
        assert!(page.contains(&format!("`examples/burn/{file}`")), "{file}");
        num += 1;
        let place = tempfile::tempdir().unwrap();
        fs::copy(&path, place.path().join(file)).unwrap();
        write_items(name, place.path());
        let mut arguments = vec!["check", file];
        if ["mnist", "ag_news", "db_pedia"].contains(&name) {
            // Few items have few steps.
            arguments.extend(["--set", "scheduler.warmup_steps=5"]);
        }
        if name == "cifar10" {
            arguments.extend(["--set", "train.batch_size=8"]);
        }
        if name == "db_pedia" {
            arguments.extend(["--set", "data.tokens.length=16"]);
        }
        if ["mnist", "wgan"].contains(&name) {
            // Its files may have to be downloaded.
            arguments.extend([
                "--set",
                "data.fallback=digits",
                "--set",
                "data.download=false",
            ]);
        }
        let (code, _, said) = run(place.path(), &arguments);
        assert_eq!(code, 0, "{name}: {said}");
        if ["california_housing", "modern_lstm", "cifar10"].contains(&name) {
            let sets = [
                "--quiet",
                "--set",
                "train.epochs=1",
                "--set",
                "train.batch_size=8",
            ];
            let (code, _, said) = run(place.path(), &[&["run", file], sets.as_slice()].concat());
            assert_eq!(code, 0, "{name}: {said}");
        }
    }
    assert_eq!(num, 7);
}
