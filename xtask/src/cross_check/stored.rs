//! A stored study's result for the same comparison: io_uring over epoll at a rate, with the same number of
//! connections. Pure.

use serde_json::Value;

use super::interval::Ratio;

/// The comparison of one cell.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredRatio {
    pub cell_id: String,
    pub rate_per_second: f64,
    pub ratio: Ratio,
}

/// All comparisons of server CPU per message, of an arm on io_uring with a baseline on epoll, in cells at a rate of an
/// echo server with these connections and this many bytes, one in flight on each.
pub fn ratios(json: &str, connections: u64, message_bytes: u64) -> Result<Vec<StoredRatio>, String> {
    let study: Value = serde_json::from_str(json).map_err(|error| format!("the export: {error}"))?;
    let result = &study["result"];
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let driver_of = |name: &Value| {
        let arm = list(&result["spec"]["arms"]).into_iter().find(|arm| arm["name"] == *name)?;
        Some(arm["subject"]["weir"]["driver"].as_str()?.to_owned())
    };
    let mut found = Vec::new();
    for cell in list(&result["spec"]["cells"]) {
        let is_shape = cell["connections"] == connections
            && cell["message_bytes"] == message_bytes
            && cell["depth"] == 1
            && cell["http"].is_null()
            && cell["storage"].is_null()
            && cell["orders"].is_null();
        let Some(rate_per_second) = cell["load"]["open"]["rate_per_second"].as_f64().filter(|_| is_shape)
        else {
            continue;
        };
        for comparison in list(&result["effects"]) {
            let is_it = comparison["question"] == "comparison"
                && comparison["cell_id"] == cell["id"]
                && comparison["metric"] == "server-cpu-per-message"
                && driver_of(&comparison["arm"]).as_deref() == Some("uring")
                && driver_of(&comparison["baseline"]).as_deref() == Some("epoll");
            let numbers = [&comparison["estimate"], &comparison["interval"][0], &comparison["interval"][1]];
            if let ([Some(ratio), Some(low), Some(high)], true) = (numbers.map(Value::as_f64), is_it) {
                let cell_id = cell["id"].as_str().unwrap_or_default().to_owned();
                found.push(StoredRatio { cell_id, rate_per_second, ratio: Ratio { ratio, low, high } });
            }
        }
    }
    if found.is_empty() {
        return Err(format!(
            "the study compares no arm on io_uring with one on epoll at a rate over {connections} connections"
        ));
    }
    Ok(found)
}

/// The comparison with the nearest rate, by the ratio of rates.
pub fn nearest(stored: &[StoredRatio], rate_per_second: f64) -> Option<&StoredRatio> {
    let distance = |it: &&StoredRatio| (it.rate_per_second / rate_per_second).ln().abs();
    stored.iter().min_by(|one, other| distance(one).total_cmp(&distance(other)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn arm(name: &str, driver: &str) -> Value {
        json!({"name": name, "subject": {"weir": {"driver": driver}}})
    }

    fn cell(id: &str, connections: u32, load: &Value) -> Value {
        json!({"id": id, "connections": connections, "depth": 1, "message_bytes": 64, "load": load})
    }

    fn at_rate(rate_per_second: f64) -> Value {
        json!({"open": {"rate_per_second": rate_per_second, "poisson": true}})
    }

    fn comparison(cell_id: &str, arm: &str, metric: &str) -> Value {
        json!({"question": "comparison", "cell_id": cell_id, "arm": arm, "baseline": "epoll", "metric": metric,
            "estimate": 0.9, "interval": [0.8, 1.0]})
    }

    fn study() -> Value {
        let cells = [
            cell("closed", 100, &json!("closed")),
            cell("slow", 100, &at_rate(1e4)),
            cell("fast", 100, &at_rate(4e4)),
            cell("few", 10, &at_rate(2e4)),
        ];
        let of = |cell: &str| comparison(cell, "ring", "server-cpu-per-message");
        let again = comparison("slow", "epoll-again", "server-cpu-per-message");
        let other_metric = comparison("slow", "ring", "throughput");
        let mut near = of("slow");
        near["question"] = "near-state".into();
        let effects = [of("closed"), of("slow"), near, again, other_metric, of("fast"), of("few")];
        let arms = [arm("epoll", "epoll"), arm("ring", "uring"), arm("epoll-again", "epoll")];
        json!({"result": {"spec": {"arms": arms, "cells": cells}, "effects": effects}})
    }

    #[test]
    fn the_cell_of_the_nearest_rate_is_found() {
        let found = ratios(&study().to_string(), 100, 64).expect("two cells");
        let names: Vec<&str> = found.iter().map(|it| it.cell_id.as_str()).collect();
        assert_eq!(names, ["slow", "fast"]);
        assert_eq!(nearest(&found, 19_000.0).map(|it| it.cell_id.as_str()), Some("slow"));
        assert_eq!(nearest(&found, 21_000.0).map(|it| it.cell_id.as_str()), Some("fast"));
        assert_eq!(found[0].ratio, Ratio { ratio: 0.9, low: 0.8, high: 1.0 });
    }

    #[test]
    fn a_study_without_such_a_cell_is_an_error() {
        let error = ratios(&study().to_string(), 1_000, 64).expect_err("no such cell");
        assert!(error.ends_with("at a rate over 1000 connections"), "{error}");
        assert!(ratios("no", 100, 64).is_err_and(|error| error.starts_with("the export: ")));
    }
}
