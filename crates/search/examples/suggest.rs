//! Suggests points to another program, for comparisons with other samplers: reads a line of JSON, and writes one.
//!
//! `{"method": "tpe", "seed": 1, "axes": [{"choice": [1, 1]}, {"real": true, "when": [0, 1]}, {"levels": [1, 1, 1]}],
//! "told": [[[0.2, null, 0.5], 1.5]]}` → `[0.2, 0.3, 0.5]`: positions as [`runner_search::Point`] has them. `when` names
//! an axis before and the index of its value; told values are lower for better trials, `null` for failed ones, and
//! pruned ones have their epochs as a third item, and
//! further values are a list as the fourth, and the violation of constraints is the fifth. `pending` lists points without a value.

#![expect(clippy::print_stdout, reason = "its output is its purpose")]

use runner_search::{Axis, Method, Point, Shown, Space, Told, suggest};
use serde_json::{Value as Json, json};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    for line in std::io::stdin().lines() {
        let asked: Json = serde_json::from_str(&line?)?;
        println!(
            "{}",
            answer(&asked).ok_or("the line does not have the expected form")?
        );
    }
    Ok(())
}

fn answer(asked: &Json) -> Option<Json> {
    let method = match asked["method"].as_str()? {
        "random" => Method::Random,
        "sobol" => Method::Sobol,
        "tpe" => Method::Tpe,
        "gp" => Method::Gp,
        "cma_es" => Method::CmaEs,
        "nsga2" => Method::Nsga2,
        _ => return None,
    };
    let axes = asked["axes"].as_array()?;
    let numbers = |list: &[Json]| -> Vec<f64> { list.iter().filter_map(Json::as_f64).collect() };
    let weights = |list: &Json| list.as_array().map_or(Vec::new(), |list| numbers(list));
    let axis = |axis: &Json| {
        if !axis["choice"].is_null() {
            Axis::choice(&weights(&axis["choice"]))
        } else if !axis["levels"].is_null() {
            Axis::levels(&weights(&axis["levels"]))
        } else {
            Axis::Real
        }
    };
    let space = Space {
        axes: axes.iter().map(axis).collect(),
    };
    let point = |point: &Json| -> Point {
        point
            .as_array()
            .into_iter()
            .flatten()
            .map(Json::as_f64)
            .collect()
    };
    let told = asked["told"].as_array()?.iter();
    let shown = Shown {
        told: told
            .map(|told| Told {
                point: point(&told[0]),
                value: told[1].as_f64(),
                pruned_at: told[2].as_u64().map(|epochs| epochs as usize),
                others: told[3]
                    .as_array()
                    .map_or(Vec::new(), |others| numbers(others)),
                violation: told[4].as_f64().unwrap_or(0.0),
            })
            .collect(),
        pending: asked["pending"]
            .as_array()
            .into_iter()
            .flatten()
            .map(point)
            .collect(),
    };
    let number = shown.told.len() + shown.pending.len();
    let trial = |positions: &[f64]| {
        let mut point = Point::new();
        for (axis, position) in axes.iter().zip(positions) {
            let is_set = axis["when"].as_array().is_none_or(|when| {
                let at = when[0].as_u64().unwrap_or(0) as usize;
                point[at].and_then(|at_value| space.axes[at].index(at_value))
                    == when[1].as_u64().map(|value| value as usize)
            });
            point.push(is_set.then_some(*position));
        }
        Some(point)
    };
    let seed = asked["seed"].as_u64()?;
    let began = std::time::Instant::now();
    let suggestion = suggest(method, &space, (seed, number), &shown, &trial)?;
    Some(json!({ "point": suggestion.point, "secs": began.elapsed().as_secs_f64() }))
}
