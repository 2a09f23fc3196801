use super::*;

const HOSTILE: &str = "<\"&'>\u{0}\u{7}ä…and a name that goes on and on";

/// Numbers that plots must handle.
const ODD: [f64; 8] = [
    f64::NAN,
    f64::INFINITY,
    f64::NEG_INFINITY,
    1e308,
    -1e308,
    0.0,
    5e-324,
    1.0,
];

fn line(series: usize, stroke: Stroke, points: &[(f64, f64)], band: Option<f64>) -> Line {
    let points = points.iter().map(|(x, y)| Point {
        x: *x,
        y: *y,
        band: band.map(|half| (y - half, y + half)),
    });
    Line {
        series,
        name: format!("line {series}"),
        stroke,
        points: points.collect(),
    }
}

fn kind(is_log: bool) -> Kind {
    if is_log { Kind::Log } else { Kind::Linear }
}

fn curves(lines_of: &[Line], is_log: bool) -> String {
    lines(&Lines {
        description: "valid/loss by epoch",
        x_label: "epoch",
        y_label: "loss",
        y: kind(is_log),
        lines: lines_of,
    })
}

/// Properties of every drawing: one closed element, no text interpreted as markup, no invalid coordinate.
fn is_whole(svg: &str) {
    assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>"), "{svg}");
    assert_eq!(svg.matches("<svg ").count(), 1);
    for tag in ["g", "text", "title"] {
        let opened =
            svg.matches(&format!("<{tag}>")).count() + svg.matches(&format!("<{tag} ")).count();
        assert_eq!(
            opened,
            svg.matches(&format!("</{tag}>")).count(),
            "{tag} in {svg}"
        );
    }
    for wrong in ["NaN", "inf", "<\"", "&'", "\u{0}", "--"] {
        assert!(!svg.contains(wrong), "{wrong} in {svg}");
    }
}

/// A drawing, one element per line.
fn shown(svg: &str) -> String {
    is_whole(svg);
    svg.replace("><", ">\n<")
}

#[test]
fn a_plot_of_lines() {
    let first = line(
        0,
        Stroke::Solid,
        &[(1.0, 0.9), (2.0, 0.5), (3.0, f64::NAN), (4.0, 0.4)],
        Some(0.05),
    );
    let second = line(1, Stroke::Dashed, &[(1.0, 1.0), (2.0, 0.7)], None);
    insta::assert_snapshot!("lines", shown(&curves(&[first, second], false)));
}

#[test]
fn a_plot_of_levels() {
    let level = |name: &str, mean: f64| Level {
        name: name.into(),
        mean,
        interval: Some((mean - 0.1, mean + 0.1)),
        dots: vec![mean - 0.05, mean + 0.05],
        title: format!("{name}: {mean}"),
    };
    let plot = Levels {
        description: "accuracy by optimizer",
        x_label: "optimizer.type",
        y_label: "valid/accuracy",
        levels: &[level("sgd", 0.6), level("adam", 0.9)],
        is_ordered: false,
        bounds: (0.0, 1.0),
    };
    assert!(!plot.is_cut());
    insta::assert_snapshot!("levels", shown(&levels(&plot)));
}

#[test]
fn intervals_end_in_arrows_where_they_go_on() {
    let level = |mean: f64, interval: (f64, f64)| Level {
        name: mean.to_string(),
        mean,
        interval: Some(interval),
        dots: vec![mean - 0.01, mean + 0.01],
        title: mean.to_string(),
    };
    // Two seeds of 0.9 have an interval far beyond the range of an accuracy.
    let plot = Levels {
        description: "accuracy",
        x_label: "x",
        y_label: "y",
        levels: &[level(0.9, (0.2, 1.6)), level(0.95, (0.94, 0.96))],
        is_ordered: false,
        bounds: (0.0, 1.0),
    };
    assert!(plot.is_cut());
    let drawing = levels(&plot);
    is_whole(&drawing);
    insta::assert_snapshot!("levels_cut", shown(&drawing));
    let scale = strip_scale([0.9, 0.95].into_iter(), Kind::Linear);
    assert!(is_beyond_strip(&scale, (0.2, 0.93)) && !is_beyond_strip(&scale, (0.91, 0.93)));
    let cut = strip(&scale, 0.9, Some((0.2, 0.93)), &[0.89, 0.91], "t");
    let whole = strip(&scale, 0.9, Some((0.91, 0.93)), &[0.89, 0.91], "t");
    let arrows = |drawing: &str| drawing.matches("class=\"bar\"").count();
    assert_eq!((arrows(&cut), arrows(&whole)), (2, 0));
}

#[test]
fn a_heat_map() {
    let cell = |value: f64| Cell {
        value: Some(value),
        text: value.to_string(),
        title: format!("it is {value}"),
    };
    let plot = Heat {
        description: "accuracy by width and dropout",
        x_label: "width",
        y_label: "dropout",
        columns: &["16".into(), "32".into()],
        rows: &["0.0".into(), "0.5".into()],
        cells: &[vec![cell(0.5), cell(0.9)], vec![cell(0.7), Cell::default()]],
        is_low_dark: false,
    };
    insta::assert_snapshot!("heat", shown(&heat(&plot)));
}

#[test]
fn parallel_coordinates() {
    let axis = |name: &str, levels: Option<&[&str]>| Coordinate {
        name: name.into(),
        levels: levels.map(|levels| levels.iter().map(|level| (*level).into()).collect()),
        kind: Kind::Linear,
    };
    let trace = |values: [Option<f64>; 3], shade| Trace {
        values: values.to_vec(),
        shade,
        title: "trial".into(),
    };
    let plot = Parallel {
        description: "trials",
        axes: &[
            axis("optimizer", Some(&["sgd", "adam"])),
            axis("rate", None),
            axis("valid/accuracy", None),
        ],
        lines: &[
            trace([Some(0.0), Some(1e-3), Some(0.4)], 0),
            trace([Some(1.0), None, Some(0.9)], 4),
            trace([Some(1.0), Some(0.1), Some(0.8)], 3),
        ],
    };
    insta::assert_snapshot!("parallel", shown(&parallel(&plot)));
}

fn dot(x: f64, y: f64) -> Dot {
    Dot {
        x,
        y,
        series: 1,
        title: "a point".into(),
    }
}

fn points(dots: &[Dot], is_log: bool, line: Reference) -> String {
    scatter(&Scatter {
        description: "predicted by target",
        x_label: "target",
        y_label: "predicted",
        is_log,
        y: Kind::Linear,
        points: dots,
        line,
    })
}

#[test]
fn a_plot_of_points() {
    let dots = [dot(1.0, 1.5), dot(2.0, 1.8)];
    insta::assert_snapshot!("scatter", shown(&points(&dots, false, Reference::Diagonal)));
}

fn bar(name: &str, value: f64, mark: Option<f64>) -> Bar {
    Bar {
        name: name.into(),
        rank: None,
        value,
        text: format!("{value} s"),
        mark,
        title: name.into(),
    }
}

#[test]
fn a_plot_of_bars() {
    let plot = Bars {
        description: "seconds by trial",
        label: "seconds a run",
        bars: &[bar("adam", 1.5, Some(2.0)), bar("sgd", 0.5, None)],
    };
    insta::assert_snapshot!("bars", shown(&bars(&plot)));
}

#[test]
fn numbers_along_an_axis_are_whole_or_left_out() {
    let level = |value: f64| Level {
        name: value.to_string(),
        mean: value,
        interval: None,
        dots: vec![value],
        title: String::new(),
    };
    let values = [
        0.0001232, 0.0003722, 0.0007439, 0.001118, 0.003323, 0.004586, 0.007394, 0.01203, 0.02705,
        0.05374, 0.2316, 0.7678,
    ];
    let drawn = levels(&Levels {
        description: "accuracy by rate",
        x_label: "rate",
        y_label: "accuracy",
        levels: &values.map(level),
        is_ordered: true,
        bounds: (0.0, 1.0),
    });
    let shown = values
        .iter()
        .filter(|value| drawn.contains(&format!(">{value}<")))
        .count();
    assert!((4..12).contains(&shown), "{shown}");
    assert!(!drawn.contains('\u{2026}'), "{drawn}");
}

fn known(x: f64, y: f64, value: f64) -> Known {
    Known {
        x,
        y,
        value,
        title: format!("trial: {value}"),
    }
}

fn contours(points: &[Known], is_log: bool) -> String {
    contour(&Contour {
        description: HOSTILE,
        x_label: "learning_rate",
        y_label: "dropout",
        is_log: [is_log, false],
        points,
        bands: Kind::Linear,
        is_low_dark: false,
    })
}

#[test]
fn a_contour_plot() {
    let points = [
        known(0.001, 0.0, 0.5),
        known(0.1, 0.0, 0.9),
        known(0.01, 0.5, 0.7),
        known(0.01, 0.5, 0.8),
    ];
    let drawn = contours(&points, true);
    is_whole(&drawn);
    insta::assert_snapshot!("contour", shown(&drawn));
    // All on a line: only the points.
    let line: Vec<Known> = (0..9).map(|at| known(f64::from(at), 0.0, 1.0)).collect();
    let drawn = contours(&line, false);
    assert_eq!(drawn.matches("class=\"known\"").count(), 9);
    assert!(!drawn.contains("<path class=\"cell\""));
}

#[test]
fn a_contour_plot_of_many_trials_is_not_large() {
    let points: Vec<Known> = (1..=1000_u64)
        .map(|at| {
            let part = |salt: u64| (at.wrapping_mul(salt) >> 11) as f64 / (1u64 << 53) as f64;
            let (x, y) = (part(0x9e37_79b9_7f4a_7c15), part(0xd1b5_4a32_d192_ed03));
            known(x, y, (9.0 * x).sin() + y)
        })
        .collect();
    let drawn = contours(&points, false);
    assert!(drawn.len() < 400_000, "{}", drawn.len());
}

#[test]
fn a_strip() {
    let scale = strip_scale([0.8, 1.0].into_iter(), Kind::Linear);
    let drawn = strip(
        &scale,
        0.9,
        Some((0.85, 0.95)),
        &[0.88, 0.92],
        "0.90, from 0.85 to 0.95",
    );
    insta::assert_snapshot!("strip", shown(&drawn));
}

#[test]
fn hostile_numbers_and_names_draw_what_can_be_drawn() {
    let mut samples: Vec<Vec<f64>> = vec![vec![], ODD.to_vec()];
    samples.extend(ODD.iter().map(|value| vec![*value]));
    samples.extend(
        ODD.iter()
            .flat_map(|a| ODD.iter().map(move |b| vec![*a, *b])),
    );
    for values in &samples {
        let pairs: Vec<(f64, f64)> = values
            .iter()
            .enumerate()
            .map(|(x, y)| (x as f64, *y))
            .collect();
        let mut drawn = line(9, Stroke::Solid, &pairs, Some(1.0));
        drawn.name = HOSTILE.into();
        for is_log in [false, true] {
            is_whole(&curves(std::slice::from_ref(&drawn), is_log));
            for reference in [Reference::None, Reference::Diagonal, Reference::Zero] {
                let dots: Vec<Dot> = values.iter().map(|v| dot(*v, *v)).collect();
                is_whole(&points(&dots, is_log, reference));
            }
        }
        let level = |value: &f64| Level {
            name: HOSTILE.into(),
            mean: *value,
            interval: Some((*value, f64::NAN)),
            dots: values.clone(),
            title: HOSTILE.into(),
        };
        is_whole(&levels(&Levels {
            description: HOSTILE,
            x_label: HOSTILE,
            y_label: HOSTILE,
            levels: &values.iter().map(level).collect::<Vec<_>>(),
            is_ordered: true,
            bounds: (0.0, f64::INFINITY),
        }));
        let cell = |value: &f64| Cell {
            value: Some(*value),
            text: HOSTILE.into(),
            title: HOSTILE.into(),
        };
        for names in [0, 1, 40] {
            is_whole(&heat(&Heat {
                description: HOSTILE,
                x_label: HOSTILE,
                y_label: HOSTILE,
                columns: &vec![HOSTILE.into(); names],
                rows: &vec![HOSTILE.into(); names],
                cells: &[values.iter().map(cell).collect(), vec![]],
                is_low_dark: names == 1,
            }));
        }
        let axis = |levels| Coordinate {
            name: HOSTILE.into(),
            levels,
            kind: Kind::NearOne(1e-3),
        };
        let trace = |value: &f64| Trace {
            values: vec![Some(*value); 3],
            shade: 99,
            title: HOSTILE.into(),
        };
        is_whole(&parallel(&Parallel {
            description: HOSTILE,
            axes: &[
                axis(Some(vec![])),
                axis(None),
                axis(Some(vec![HOSTILE.into()])),
                axis(None),
            ],
            lines: &values.iter().map(trace).collect::<Vec<_>>(),
        }));
        is_whole(&parallel(&Parallel {
            description: "",
            axes: &[],
            lines: &[],
        }));
        is_whole(&bars(&Bars {
            description: HOSTILE,
            label: HOSTILE,
            bars: &values
                .iter()
                .map(|v| Bar {
                    text: HOSTILE.into(),
                    ..bar(HOSTILE, *v, Some(*v))
                })
                .collect::<Vec<_>>(),
        }));
        let places: Vec<Known> = values
            .iter()
            .flat_map(|x| values.iter().map(move |y| known(*x, *y, x + y)))
            .collect();
        is_whole(&contours(&places, false));
        is_whole(&contours(&places, true));
        let scale = strip_scale(values.iter().copied(), Kind::Linear);
        for value in ODD {
            is_whole(&strip(&scale, value, Some((value, 1.0)), values, HOSTILE));
        }
    }
}

/// The relative luminance of a colour such as `#176ee8` (WCAG 2.2).
fn luminance(color: &str) -> f64 {
    let channel = |at: usize| {
        let value = u8::from_str_radix(&color[at..at + 2], 16).unwrap();
        let share = f64::from(value) / 255.0;
        if share <= 0.04045 {
            share / 12.92
        } else {
            ((share + 0.055) / 1.055).powf(2.4)
        }
    };
    0.2126 * channel(1) + 0.7152 * channel(3) + 0.0722 * channel(5)
}

#[test]
fn colours_of_series_differ_from_each_other_and_from_the_page() {
    let style = include_str!("../html/style.css");
    let contrast = |a: &str, b: &str| {
        let (a, b) = (luminance(a) + 0.05, luminance(b) + 0.05);
        f64::max(a / b, b / a)
    };
    let schemes: Vec<&str> = style
        .lines()
        .filter(|line| line.contains("--c0:"))
        .collect();
    assert_eq!(schemes.len(), 2);
    for (scheme, page) in schemes.into_iter().zip(["#ffffff", "#14171a"]) {
        let colors: Vec<&str> = scheme
            .split("--c")
            .skip(1)
            .map(|part| &part[3..10])
            .collect();
        assert_eq!(colors.len(), 8, "{scheme}");
        for (at, color) in colors.iter().enumerate() {
            assert!(contrast(color, page) >= 3.0, "{color} on {page}");
            for other in &colors[..at] {
                assert!(contrast(color, other) >= 1.2, "{color} and {other}");
            }
        }
    }
}

/// The linear red, green and blue of a colour as someone sees it who lacks the cones for red or those for green (Viénot,
/// Brettel and Mollon, 1999), or as it is.
fn seen(color: &str, lacking: Option<bool>) -> [f64; 3] {
    let channel = |at: usize| {
        let value = u8::from_str_radix(&color[at..at + 2], 16).unwrap();
        (f64::from(value) / 255.0).powf(2.2)
    };
    let [red, green, blue] = [channel(1), channel(3), channel(5)];
    // Of both kinds, red and green are seen as one; and a part of both in blue.
    match lacking {
        None => [red, green, blue],
        Some(true) => {
            let both = 0.11238 * red + 0.88762 * green;
            [both, both, 0.00401 * red - 0.00401 * green + blue]
        }
        Some(false) => {
            let both = 0.29275 * red + 0.70725 * green;
            [both, both, -0.02234 * red + 0.02234 * green + blue]
        }
    }
}

/// The distance of two colours in Oklab (Ottosson, 2020): 0.02 is just noticeable.
fn distance(a: [f64; 3], b: [f64; 3]) -> f64 {
    let lab = |[r, g, b]: [f64; 3]| {
        let l = (0.412_221_470_8 * r + 0.536_332_536_3 * g + 0.051_445_992_9 * b).cbrt();
        let m = (0.211_903_498_2 * r + 0.680_699_545_1 * g + 0.107_396_956_6 * b).cbrt();
        let s = (0.088_302_461_9 * r + 0.281_718_837_6 * g + 0.629_978_700_5 * b).cbrt();
        [
            0.210_454_255_3 * l + 0.793_617_785_0 * m - 0.004_072_046_8 * s,
            1.977_998_495_1 * l - 2.428_592_205_0 * m + 0.450_593_709_9 * s,
            0.025_904_037_1 * l + 0.782_771_766_2 * m - 0.808_675_766_0 * s,
        ]
    };
    let (a, b) = (lab(a), lab(b));
    let squares = a.iter().zip(b).map(|(a, b)| (a - b) * (a - b));
    squares.sum::<f64>().sqrt()
}

#[test]
fn colours_of_series_differ_for_the_colour_blind() {
    let style = include_str!("../html/style.css");
    for scheme in style.lines().filter(|line| line.contains("--c0:")) {
        let colors: Vec<&str> = scheme
            .split("--c")
            .skip(1)
            .map(|part| &part[3..10])
            .collect();
        for (at, color) in colors.iter().enumerate() {
            for other in &colors[..at] {
                for lacking in [None, Some(true), Some(false)] {
                    let apart = distance(seen(color, lacking), seen(other, lacking));
                    assert!(apart >= 0.08, "{color} and {other}: {apart} {lacking:?}");
                }
            }
        }
    }
}
