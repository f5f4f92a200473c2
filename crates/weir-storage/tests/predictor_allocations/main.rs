//! No predictor allocates after its creation.

#[path = "../../../weir-proto/tests/allocations/counting.rs"]
mod counting;
mod rehearsal;

use weir_storage::predict::{ALL_DEFAULTS, PredictorSpec};

#[test]
fn the_count_counts() {
    assert_eq!(counting::allocations(|| drop(std::hint::black_box(Vec::<u8>::with_capacity(1)))), 1);
}

#[test]
fn predictors_do_not_allocate_after_they_are_made() {
    let device_times_ns = rehearsal::device_times();
    for text in ALL_DEFAULTS {
        let spec: PredictorSpec = text.parse().expect("a predictor");
        let mut predictor = spec.build(&rehearsal::COSTS);
        let mut now_ns = 0;
        let allocations = counting::allocations(|| {
            for device_ns in &device_times_ns {
                now_ns = rehearsal::step(&mut *predictor, now_ns, *device_ns);
            }
        });
        assert_eq!(allocations, 0, "{text}");
        assert!(now_ns > 0);
    }
}
