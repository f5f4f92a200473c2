//! Latency against offered load, and costs of connections.

use weir_record::{connection_costs::ConnectionCosts, latency_map::LatencyLadder};

use super::Rows;

pub(super) fn ladder(rows: &mut Rows, ladder: &LatencyLadder) {
    if let Some(it) = &ladder.capacity {
        let subject = [it.cell_id.as_str(), &it.arm, ""];
        rows.figure(subject, "offered-capacity", "value", Some(it.per_second), "1/s");
        rows.flag(subject, "offered-capacity", "is-lower-bound", it.is_bound);
    }
    for rung in &ladder.rungs {
        let cell = rung.cell_id.as_str();
        rows.number([cell, "", ""], "offered-rate", "value", rung.rate_per_second, "1/s");
        if let Some(share) = rung.share {
            rows.number([cell, "", ""], "offered-rate", "share-of-capacity", share, "fraction");
        }
        for point in &rung.arms {
            let subject = [cell, point.arm.as_str(), ""];
            rows.number(subject, "offered-rate-answered", "value", point.achieved_per_second, "1/s");
            rows.figure(subject, "offered-latency-p50", "value", point.p50_ns, "ns");
            rows.figure(subject, "offered-latency-p99", "value", point.p99_ns, "ns");
            rows.flag(subject, "offered-latency", "is-upper-bound", point.is_upper_bound);
            rows.flag(subject, "offered-latency", "is-generator-busy", point.is_generator_busy);
            if let Some(lag_ns) = point.lag_p99_ns {
                rows.number(subject, "offered-send-lag-p99", "value", lag_ns, "ns");
            }
        }
    }
}

pub(super) fn costs(rows: &mut Rows, costs: &ConnectionCosts) {
    for it in &costs.idle {
        let subject = [it.cell_id.as_str(), &it.arm, ""];
        rows.figure(subject, "silent-cpu-ratio", "value", it.ratio, "ratio");
        rows.flag(subject, "silent-cpu-ratio", "is-generator-bound", it.is_bound);
        rows.figure(subject, "memory-per-connection", "value", it.private_bytes, "B");
        rows.figure(subject, "pss-per-connection", "value", it.proportional_bytes, "B");
    }
    for it in &costs.kernel {
        let subject = [it.cell_id.as_str(), "", ""];
        rows.figure(subject, "kernel-memory-per-connection", "value", Some(it.bytes), "B");
    }
    for it in &costs.churn {
        let subject = [it.cell_id.as_str(), &it.arm, ""];
        rows.figure(subject, "cpu-per-connection", "value", it.cpu_us, "us");
        rows.figure(subject, "connections-per-second", "value", it.per_second, "1/s");
        rows.flag(subject, "connections-per-second", "is-lower-bound", it.is_bound);
        rows.flag(subject, "connection-cpu-ratio", "is-generator-bound", it.is_bound || it.is_base_bound);
        rows.figure(subject, "connection-to-message-cpu-ratio", "value", it.ratio, "ratio");
    }
}
