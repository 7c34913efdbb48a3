// A routing policy in Rust: the shortest queue as last scraped, with what was sent since then.
//
//   rustc --edition 2021 -O --crate-type cdylib -o shortest_queue.so shortest_queue.rs
use std::ffi::{c_char, c_void};
use std::slice;

#[repr(C)]
pub struct Servers {
    size: u32,
    count: u32,
    waiting: *const f64,
    running: *const f64,
    kv_usage: *const f64,
    age_s: *const f64,
    in_flight: *const f64,
    in_flight_tokens: *const f64,
    prefix_tokens: *const f64,
}

#[repr(C)]
pub struct Text {
    bytes: *const c_char,
    length: u64,
}

#[repr(C)]
pub struct Request {
    size: u32,
    priority: i32,
    id: u64,
    random: u64,
    now_s: f64,
    prompt_tokens: i64,
    max_tokens: i64,
    adapter: Text,
    session: Text,
}

const INPUT_METRICS: u32 = 1;

#[no_mangle]
pub extern "C" fn routesim_policy_abi() -> u32 {
    1
}

#[no_mangle]
pub extern "C" fn routesim_policy_inputs() -> u32 {
    INPUT_METRICS
}

#[no_mangle]
pub extern "C" fn routesim_policy_create(_: *const c_char, _: u64, _: u32) -> *mut c_void {
    Box::into_raw(Box::new(0u8)) as *mut c_void
}

/// # Safety
/// `policy` comes from routesim_policy_create and is not used again.
#[no_mangle]
pub unsafe extern "C" fn routesim_policy_destroy(policy: *mut c_void) {
    drop(Box::from_raw(policy as *mut u8));
}

/// # Safety
/// The pointers are those that routesim hands over: `scores` and the arrays have `count` elements.
#[no_mangle]
pub unsafe extern "C" fn routesim_policy_score(
    _policy: *mut c_void,
    _request: *const Request,
    servers: *const Servers,
    scores: *mut f64,
) -> i32 {
    let servers = &*servers;
    let count = servers.count as usize;
    let waiting = slice::from_raw_parts(servers.waiting, count);
    let in_flight = slice::from_raw_parts(servers.in_flight, count);
    let scores = slice::from_raw_parts_mut(scores, count);
    for i in 0..count {
        scores[i] = -(10.0 * waiting[i] + in_flight[i]);
    }
    0
}
