//! The cases: their subjects, where they run, and the drivers that they do not apply to. The numbers are those of the
//! project's list of acceptance cases; those that start with A come from bugs found in other servers, and those that
//! start with F are about files.

use crate::{cases, rig::Rig, rig::run_case, subject::Subject};

/// Where a case runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// In this process, with other cases.
    Here,
    /// In a separate process: it changes limits, counts the process's descriptors or needs very many.
    OwnProcess,
}

/// One case.
pub struct Case {
    pub number: &'static str,
    pub name: &'static str,
    pub body: fn(&mut Rig),
    pub place: Place,
    /// Most descriptors that it opens at a time, both ends together; irrelevant in a separate process.
    pub descriptors: usize,
    exceptions: &'static [(Group, &'static str)],
}

type Group = fn(&Subject) -> bool;

impl Case {
    /// Why this case does not apply to a subject, if so.
    pub fn exception(&self, subject: &Subject) -> Option<&'static str> {
        self.exceptions.iter().find(|(group, _)| group(subject)).map(|(_, why)| *why)
    }
}

const BLOCKING: Group = |subject| subject.name == "blocking";
const SIM: Group = Subject::is_sim;
const NOT_URING: Group = |subject| !subject.is_uring();
const NOT_EPOLL: Group = |subject| !subject.is_epoll();
const ONE_RECEIVE_A_CALL: Group = |subject| !subject.is_multishot();
const ARMED: Group = Subject::is_multishot;
const SQPOLL: Group = |subject| subject.name == "uring_sqpoll";

macro_rules! conformance {
    ($($number:literal $name:ident = $body:path, $place:ident, $descriptors:literal
       $(, except $group:ident: $why:expr)*;)*) => {
        /// Every case.
        pub static CASES: &[Case] = &[$(Case {
            number: $number,
            name: stringify!($name),
            body: $body,
            place: Place::$place,
            descriptors: $descriptors,
            exceptions: &[$(($group, $why)),*],
        }),*];

        $(mod $name { super::on_every_subject!($name); })*
    };
}

/// One test of a case for each subject's name.
macro_rules! on_every_subject {
    ($case:ident) => {
        $crate::conformance::on_every_subject! { $case:
            uring uring_like_6_12 uring_like_6_1 uring_like_6_0 uring_like_5_19 uring_like_5_18
            uring_like_5_17 uring_like_5_15 uring_like_5_11
            uring_single_receive uring_submit_each uring_no_defer uring_tiny_ring uring_minimum_wait
            uring_fixed_files uring_zero_copy uring_bundle uring_sqpoll
            epoll_edge epoll_level epoll_drain epoll_like_5_10 poll select blocking sim sim_short sim_level
        }
    };
    ($case:ident: $($subject:ident)*) => {
        $(#[test]
        fn $subject() {
            let test = concat!(module_path!(), "::", stringify!($subject));
            $crate::conformance::run(stringify!($case), stringify!($subject), test);
        })*
    };
}
use on_every_subject;

fn run(case: &str, subject: &str, test: &'static str) {
    let case = CASES.iter().find(|entry| entry.name == case).unwrap_or_else(|| panic!("no case {case}"));
    run_case(case, Subject::named(subject), test);
}

const NO_TASKS: &str = "a thread runs one handler and waits for one thing: no second task, no mailbox";
const NO_POOL: &str = "every connection has its own thread, runtime and buffers";
const NO_DESCRIPTORS: &str = "simulated sockets are no descriptors";
const LATER: &str = "another thread submits: a turn says nothing about when";
const ONE_RUNTIME: &str = "both sides are tasks of one runtime, and draining ends both";

conformance! {
    "1" a_slow_reader_holds_no_more_than_the_high_water_mark = cases::streams::slow_reader, Here, 20;
    "2" short_writes_lose_nothing = cases::streams::short_writes, Here, 20;
    "2b" what_finds_no_room_at_once_is_not_queued = cases::streams::without_waiting, Here, 20;
    "3" pipelined_requests_are_answered_in_order = cases::streams::pipelined_requests, Here, 20;
    "3b" requests_split_into_single_bytes_are_understood = cases::streams::split_requests, Here, 20;
    "3c" what_follows_urgent_data_is_received = cases::streams::urgent, Here, 20,
        except SIM: NO_DESCRIPTORS,
        except ARMED: "the kernel may merge both arrivals into one event, and the receive then stays in between";
    "A14" messages_of_exactly_the_buffer_size_come_back = cases::streams::exact_sizes, Here, 20;
    "A14b" every_kind_of_address_works = cases::streams::addresses, Here, 20;
    "A14c" the_address_of_the_other_end_is_known = cases::streams::other_end, Here, 20;
    "4" after_half_close_every_reply_still_arrives = cases::streams::half_close, Here, 20;
    "4b" a_server_that_ends_first_goes_on_receiving = cases::relay::server_ends_first, Here, 20;
    "A14d" the_engine_connects_and_is_refused = cases::relay::connects, Here, 20;
    "A14e" a_connection_comes_from_the_local_address_it_is_given = cases::relay::connects_from, Here, 20;
    "12b" connects_given_up_leave_nothing_behind = cases::relay::dropped_connects, Here, 260,
        except BLOCKING: NO_TASKS;
    "5" a_reset_while_idle_ends_the_handler_without_a_spin = cases::resets::reset_while_idle, Here, 20;
    "5b" a_reset_while_nobody_waits_causes_no_spin = cases::resets::reset_unwatched, Here, 20;
    "5c" a_reset_in_the_middle_of_a_reply_ends_the_handler = cases::resets::reset_while_writing, Here, 20;
    "5d" a_reset_that_a_send_meets_hides_nothing_that_had_arrived = cases::resets::reset_met_by_a_send, Here, 20;
    "5e" a_peer_that_says_all_and_is_gone_is_heard_to_the_end = cases::resets::farewell_at_once, Here, 20,
        except SIM: NO_DESCRIPTORS;
    "6" an_exhausted_pool_resets_nobody = cases::buffers::pool_exhaustion, Here, 160,
        except BLOCKING: NO_POOL;
    "7" a_starved_connection_goes_on_when_buffers_return = cases::buffers::starvation, Here, 40,
        except BLOCKING: NO_POOL,
        except SQPOLL: LATER;
    "7b" requests_that_nobody_takes_keep_no_other_from_being_read = cases::buffers::requests_that_wait, Here, 60,
        except BLOCKING: NO_POOL;
    "8" a_receive_the_kernel_ends_is_started_again = cases::buffers::rearming, Here, 20,
        except ONE_RECEIVE_A_CALL: "every receive is a separate call: there is nothing to start again";
    "9" dropping_receives_loses_no_byte = cases::cancel::dropped_receives, Here, 20;
    "10" dropping_accepts_loses_no_connection_and_no_descriptor = cases::cancel::dropped_accepts, OwnProcess, 0,
        except BLOCKING: NO_TASKS;
    "11" thousands_of_time_limits_pass_in_one_turn = cases::cancel::mass_timeout, OwnProcess, 0,
        except BLOCKING: NO_TASKS;
    "12" closing_under_a_receive_ends_the_stream_at_once = cases::cancel::close_under_receive, Here, 20;
    "13" no_event_reaches_the_next_owner_of_a_descriptor = cases::cancel::descriptor_reuse, Here, 60;
    "14" accepting_goes_on_when_descriptors_are_free_again = cases::limits::descriptor_shortage, OwnProcess, 0;
    "14b" accepting_leaves_descriptors_to_files = cases::limits::descriptors_left_to_files, OwnProcess, 0,
        except SIM: NO_DESCRIPTORS;
    "15" an_accept_storm_leaves_nothing_behind = cases::limits::accept_storm, OwnProcess, 0,
        except SIM: NO_DESCRIPTORS;
    "16" idle_connections_cost_little_memory = cases::limits::idle_memory, OwnProcess, 0,
        except SIM: "a simulated socket's kernel side is memory of this process",
        except BLOCKING: "an idle connection holds a thread, and a thread its stack";
    "17" an_overflowing_completion_queue_loses_nothing = cases::limits::completion_overflow, Here, 300,
        except NOT_URING: "there is no completion queue";
    "17b" a_full_submission_queue_delays_but_loses_nothing = cases::limits::submission_overflow, Here, 300,
        except NOT_URING: "there is no submission queue";
    "18" a_drain_cuts_no_reply_in_half = cases::drain::drain_under_load, Here, 40,
        except SIM: ONE_RUNTIME;
    "18b" a_drain_serves_what_had_arrived_to_a_slow_reader = cases::drain::drain_before_slow_reader, Here, 20,
        except SIM: ONE_RUNTIME;
    "18c" late_bytes_cost_no_reply_in_a_drain = cases::drain::drain_with_late_bytes, Here, 20,
        except SIM: ONE_RUNTIME;
    "19" nothing_touches_memory_after_teardown = cases::drain::teardown, Here, 160,
        except SIM: "no kernel holds an address: this language's own rules guard simulated buffers",
        except BLOCKING: "an operation in flight is a thread inside a call: nothing can be torn down under it";
    "20" no_wake_between_threads_is_lost = cases::wake::lockstep, Here, 20,
        except BLOCKING: NO_TASKS,
        except SIM: "virtual time ends when nobody inside waits for it: no other thread can wake it";
    "21" a_sandbox_without_io_uring_is_named_or_avoided = cases::start::sandbox, OwnProcess, 0,
        except SIM: "it starts nothing in the kernel";
    "21b" a_sandbox_without_precise_waits_stops_no_timer = cases::start::without_precise_waits, Here, 20,
        except NOT_EPOLL: "it does not wait with epoll";
    "22" each_kernel_feature_can_be_missing_alone = cases::start::masked_one_by_one, Here, 20,
        except NOT_URING: "its features are masked one by one, on io_uring";
    "23" a_flood_does_not_starve_the_others = cases::fairness::flood, Here, 120;
    "23b" one_turn_hands_out_no_more_than_its_share = cases::fairness::share_of_a_turn, Here, 20,
        except BLOCKING: "every connection has its own thread, and takes no turns with others";
    "24" descriptors_beyond_the_set_of_select_are_refused_cleanly = cases::limits::high_descriptors, OwnProcess, 0,
        except SIM: NO_DESCRIPTORS,
        except BLOCKING: "it watches no set of descriptors",
        except SQPOLL: LATER;
    "24b" a_connection_that_select_cannot_watch_is_refused_and_counted = cases::limits::high_connections, OwnProcess, 0,
        except SIM: NO_DESCRIPTORS,
        except BLOCKING: "it watches no set of descriptors";
    "24c" an_accept_outlives_connections_that_find_no_room = cases::limits::sockets_at_the_maximum, Here, 20;
    "25" idle_connections_cost_no_turns = cases::limits::idle_turns, OwnProcess, 0,
        except BLOCKING: "idle threads sleep in the kernel and have no loop that could turn";
    "27" a_paced_message_leaves_when_it_is_due = cases::wake::paced_sender, Here, 20,
        except SQPOLL: LATER;
    "A14c" interrupted_system_calls_are_taken_up_again = cases::wake::signal_storm, Here, 20,
        except SIM: "signals interrupt system calls, and it makes none";
    "30" a_connection_moves_to_another_runtime_with_every_byte = cases::moving::back_and_forth, Here, 60;
    "30b" a_connection_that_has_failed_does_not_move = cases::moving::after_a_reset, Here, 20,
        except SIM: NO_DESCRIPTORS;
    "31" both_ends_slow_down_as_they_are_asked_to = cases::streams::congestion_control, Here, 20,
        except SIM: "its connections lose nothing, and nobody slows down";
    "32" what_was_sent_has_left_when_the_program_goes_on = cases::ending::sent, Here, 30,
        except SIM: NO_DESCRIPTORS,
        except SQPOLL: LATER;
    "32b" a_closed_connection_has_ended_when_the_program_goes_on = cases::ending::closed, Here, 20,
        except SIM: NO_DESCRIPTORS,
        except SQPOLL: LATER;
    "32c" a_stream_that_the_end_of_the_runtime_cuts_does_not_look_whole = cases::ending::cut, Here, 20,
        except SIM: NO_DESCRIPTORS;
    "33" what_destructors_spawn_ends_with_the_runtime = cases::ending::spawned_by_destructors, Here, 20,
        except BLOCKING: NO_TASKS;
    "34" a_waker_that_owns_a_connection_may_go_while_another_waits = cases::wakers::replaced, Here, 30;
    "34b" a_waker_that_owns_a_connection_may_go_when_it_is_woken = cases::wakers::woken, Here, 40;
    "34c" a_waker_may_call_the_engine_when_it_is_woken = cases::wakers::calls_engine, Here, 20;
    "35" a_handler_that_panics_ends_its_connection_and_no_other = cases::panics::one_of_many, Here, 30;
    "36" a_closure_that_blocks_holds_up_no_other_connection = cases::blocking_calls::beside_others, Here, 30;
    "36b" more_closures_than_places_wait_and_all_are_answered = cases::blocking_calls::at_the_maximum, Here, 30;
    "F1" random_reads_and_writes_of_a_file_agree_with_a_model = cases::files::round_trip, Here, 20;
    "F2" a_read_past_the_end_of_a_file_is_short = cases::files::past_the_end, Here, 20;
    "F3" dropped_file_operations_touch_nothing_afterwards = cases::files::dropped, Here, 40;
    "F4" a_full_queue_of_file_operations_waits = cases::files::at_the_maximum, Here, 20;
    "F5" errors_of_files_are_those_of_the_call = cases::files::errors, Here, 20;
    "F6" a_thousand_reads_at_once_are_answered = cases::files::many_reads, Here, 20;
    "F7" no_file_operation_outlives_its_runtime = cases::files::teardown, OwnProcess, 0,
        except BLOCKING: NO_TASKS;
    "F8" a_file_reaches_a_slow_reader_between_other_sends = cases::sendfile::interleaved, Here, 20;
    "F9" a_file_that_shrinks_while_it_is_sent_ends_the_connection = cases::sendfile::truncated, Here, 20;
    "F10" a_drain_cuts_no_file_in_half = cases::sendfile::drained, Here, 20,
        except SIM: ONE_RUNTIME;
    "F11" a_peer_that_goes_away_in_a_file_leaves_nothing_behind = cases::sendfile::given_up, Here, 20;
    "F12" whoever_reads_a_file_that_is_in_memory_lets_others_run = cases::files::lets_others_run, Here, 20,
        except BLOCKING: NO_TASKS;
    "F13" what_is_opened_below_a_folder_lies_below_it = cases::files::below_folder, Here, 20;
    "F14" a_file_gets_its_room_and_then_its_name = cases::files::room_and_name, Here, 20;
    "F15" what_a_rename_holds_is_let_go_when_the_name_is_there = cases::files::held_by_a_rename, Here, 20;
    "F16" what_a_write_holds_is_let_go_when_the_bytes_are_there = cases::files::held_by_a_write, Here, 20;
    "F17" files_are_read_and_written_where_no_thread_can_be_started = cases::files::without_threads, OwnProcess, 0;
    "29" the_same_script_gives_the_same_transcript = cases::equivalence::random_scripts, Here, 60;
}

/// The table and the subjects may not drift apart: a subject without tests would pass by not running.
#[test]
fn every_subject_has_a_test_of_every_case() {
    let source = include_str!("conformance.rs");
    let (_, list) = source.split_once("on_every_subject! { $case:").expect("the list of names");
    let (list, _) = list.split_once('}').expect("the end of the list");
    let names: Vec<&str> = list.split_whitespace().collect();
    let subjects: Vec<&str> = crate::subject::SUBJECTS.iter().map(|subject| subject.name).collect();
    assert_eq!(names, subjects);
}

/// Every case applies somewhere, and no exception is given twice.
#[test]
fn every_case_applies_to_a_driver_and_every_exception_excludes_one() {
    for case in CASES {
        let subjects = &crate::subject::SUBJECTS;
        assert!(subjects.iter().any(|subject| case.exception(subject).is_none()), "{}", case.name);
        for (group, why) in case.exceptions {
            assert!(subjects.iter().any(group), "{}: {why}", case.name);
        }
    }
}
