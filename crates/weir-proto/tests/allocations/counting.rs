//! An allocator that counts the current thread's allocations and passes them on to the system's allocator.
//!
//! Invariants: (1) every call is passed on unchanged, so the contract of `GlobalAlloc` is the system's; (2) the
//! counter is a constant-initialised cell without destructor, so counting never allocates.

use std::{
    alloc::{GlobalAlloc, Layout, System},
    cell::Cell,
};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

thread_local! {
    static COUNT: Cell<u64> = const { Cell::new(0) };
}

/// How often this thread allocated or grew memory while the body ran.
pub fn allocations(body: impl FnOnce()) -> u64 {
    let before = COUNT.get();
    body();
    COUNT.get() - before
}

struct Counting;

// SAFETY: invariants 1 and 2.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        COUNT.set(COUNT.get() + 1);
        // SAFETY: invariant 1.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, address: *mut u8, layout: Layout) {
        // SAFETY: invariant 1; every address came from the system's allocator.
        unsafe { System.dealloc(address, layout) }
    }

    unsafe fn realloc(&self, address: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        COUNT.set(COUNT.get() + 1);
        // SAFETY: invariant 1; every address came from the system's allocator.
        unsafe { System.realloc(address, layout, size) }
    }
}
