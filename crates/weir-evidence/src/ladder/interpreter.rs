//! An interpreter of the kernel's BPF virtual machine on one CPU, as far as the programs use it, so that they can be
//! tested with events in any order. Pure, and for tests: every access outside a program's memory panics.
//!
//! Source: `Documentation/bpf/standardization/instruction-set.rst`.

use std::collections::BTreeMap;

use weir_sys::bpf::MapKind;

use super::{
    assembler::{Assembled, Helper},
    tables::Table,
};

/// Base addresses of the memory areas. Each value of a table has a separate area.
const STACK: u64 = 0x1000_0000;
const ARGUMENTS: u64 = 0x2000_0000;
/// Memory that event arguments may point to; everything else is unreadable.
pub(super) const POINTED_AT: u64 = 0x3000_0000;
const VALUES: u64 = 0x1_0000_0000;
const ROOM: u64 = 0x1_0000;
const STACK_BYTES: usize = 512;
/// The register of the stack's end.
const FRAME: usize = 10;

/// A CPU with its tables.
pub(super) struct Interpreter {
    /// Current time of the clock.
    pub(super) now_ns: u64,
    /// Address of the current thread, and its numbers in the first PID namespace: process in the upper half.
    pub(super) task: u64,
    pub(super) ids: u64,
    /// Device and inode of its namespace, and its numbers there.
    pub(super) namespaced: ([u32; 2], u64),
    registers: [u64; 11],
    stack: [u8; STACK_BYTES],
    arguments: Vec<u8>,
    /// Memory that pointers of events refer to.
    pub(super) pointed_at: Vec<u8>,
    values: Vec<Vec<u8>>,
    tables: BTreeMap<(usize, Vec<u8>), usize>,
}

impl Interpreter {
    pub(super) fn new() -> Self {
        Self {
            now_ns: 0,
            task: 0,
            ids: 0,
            namespaced: ([0; 2], 0),
            registers: [0; 11],
            stack: [0; STACK_BYTES],
            arguments: Vec::new(),
            pointed_at: Vec::new(),
            values: Vec::new(),
            tables: BTreeMap::new(),
        }
    }

    /// The value of a table, if it exists.
    pub(super) fn value(&mut self, table: Table, key: &[u8]) -> Option<&mut Vec<u8>> {
        let index = self.find(table, key)?;
        Some(&mut self.values[index])
    }

    /// Keys and values of a table that is not an array.
    pub(super) fn values_of(&self, table: Table) -> impl Iterator<Item = (&[u8], &[u8])> {
        let own = self.tables.iter().filter(move |((of, _), _)| *of == table as usize);
        own.map(|((_, key), index)| (&key[..], &self.values[*index][..]))
    }

    /// Runs a program for an event with these arguments.
    pub(super) fn run(&mut self, program: &Assembled, arguments: &[u64]) {
        let words = program.linked(|table| table as i32);
        self.arguments = arguments.iter().flat_map(|argument| argument.to_ne_bytes()).collect();
        self.stack.fill(0xa5);
        self.registers = [0; 11];
        self.registers[1] = ARGUMENTS;
        self.registers[FRAME] = STACK + STACK_BYTES as u64;
        let mut at = 0;
        while let Some(next) = self.step(&words, at) {
            at = next;
        }
    }

    /// Executes one instruction; returns the index of the next one, if there is one.
    fn step(&mut self, words: &[u64], at: usize) -> Option<usize> {
        let word = words[at];
        let operation = word as u8;
        let (to, from) = ((word >> 8 & 0xf) as usize, (word >> 12 & 0xf) as usize);
        let (offset, number) = ((word >> 16) as i16, (word >> 32) as i32);
        let jumped = (at as i64 + 1 + i64::from(offset)) as usize;
        let place = |base: u64| base.wrapping_add_signed(offset.into());
        let width = if operation & 0x18 == 0x18 { 8 } else { 4 };
        match operation {
            0x18 => {
                self.registers[to] = number as u64;
                return Some(at + 2);
            }
            0x85 => self.call(number),
            0x95 => return None,
            0x61 | 0x79 => self.registers[to] = self.read(place(self.registers[from]), width),
            0x62 | 0x7a => self.write(place(self.registers[to]), width, i64::from(number) as u64),
            0x63 | 0x7b => self.write(place(self.registers[to]), width, self.registers[from]),
            0xdb => {
                let address = place(self.registers[to]);
                let (old, with) = (self.read(address, 8), self.registers[from]);
                self.write(address, 8, changed(number as u8, old, with));
            }
            _ if operation & 7 == 7 => {
                let with = if operation & 8 == 0 { i64::from(number) as u64 } else { self.registers[from] };
                self.registers[to] = calculated(operation & 0xf0, self.registers[to], with);
            }
            _ if operation & 7 == 5 => {
                let holds = holds(operation & 0xf0, self.registers[to], i64::from(number) as u64);
                return Some(if holds { jumped } else { at + 1 });
            }
            other => panic!("instruction {other:#x}"),
        }
        Some(at + 1)
    }

    fn call(&mut self, helper: i32) {
        let [_, first, second, third, fourth, ..] = self.registers;
        let is = |known: Helper| helper == known as i32;
        let answer = if is(Helper::MonotonicNs) {
            self.now_ns
        } else if is(Helper::CurrentTask) {
            self.task
        } else if is(Helper::CurrentIds) {
            self.ids
        } else if is(Helper::IdsInNamespace) {
            assert_eq!(fourth, 8, "as large as the kernel's structure");
            let (own, ids) = self.namespaced;
            // Threads of other namespaces are refused, including nested ones, and zeros are written.
            let is_its_own = own.map(u64::from) == [first, second];
            let ids = if is_its_own { ids } else { 0 };
            self.write(third, 4, ids & 0xffff_ffff);
            self.write(third + 4, 4, ids >> 32);
            if is_its_own { 0 } else { u64::MAX }
        } else if is(Helper::CurrentName) {
            (0..second).for_each(|at| self.write(first + at, 1, if at == 0 { u64::from(b'x') } else { 0 }));
            0
        } else if is(Helper::ReadKernel) {
            let at = usize::try_from(third.wrapping_sub(POINTED_AT)).ok();
            let bytes = at.and_then(|at| self.pointed_at.get(at..at + second as usize)).map(<[u8]>::to_vec);
            let answer = if bytes.is_some() { 0 } else { u64::MAX };
            let bytes = bytes.unwrap_or_else(|| vec![0; second as usize]);
            (0..).zip(bytes).for_each(|(at, byte)| self.write(first + at, 1, byte.into()));
            answer
        } else if is(Helper::ReadUserText) {
            let at = usize::try_from(third.wrapping_sub(POINTED_AT)).ok();
            let text = at.and_then(|at| self.pointed_at.get(at..)).unwrap_or_default();
            let length =
                text.iter().position(|byte| *byte == 0).map_or(0, |end| end + 1).min(second as usize);
            let text = text[..length].to_vec();
            (0..).zip(text).for_each(|(at, byte)| self.write(first + at, 1, byte.into()));
            if length == 0 { u64::MAX } else { length as u64 }
        } else {
            let table = Table::ALL[first as usize];
            let key: Vec<u8> =
                (0..table.shape().key_bytes).map(|at| self.read(second + u64::from(at), 1) as u8).collect();
            if is(Helper::MapLookup) {
                self.find(table, &key).map_or(0, |index| VALUES + index as u64 * ROOM)
            } else if is(Helper::MapDelete) {
                self.tables.remove(&(table as usize, key)).map_or(u64::MAX, |_| 0)
            } else {
                assert!(is(Helper::MapUpdate), "helper {helper}");
                self.update(table, key, third, fourth)
            }
        };
        // Registers that a call clobbers.
        self.registers[1..=5].fill(0xdead);
        self.registers[0] = answer;
    }

    /// Elements of arrays always exist.
    fn find(&mut self, table: Table, key: &[u8]) -> Option<usize> {
        let (id, shape) = ((table as usize, key.to_vec()), table.shape());
        let is_array = matches!(shape.kind, MapKind::Array | MapKind::PerCpuArray);
        let index = || key.try_into().map_or(u32::MAX, u32::from_ne_bytes);
        if is_array && index() < shape.entries_max && !self.tables.contains_key(&id) {
            self.values.push(vec![0; shape.value_bytes as usize]);
            self.tables.insert(id.clone(), self.values.len() - 1);
        }
        self.tables.get(&id).copied()
    }

    fn update(&mut self, table: Table, key: Vec<u8>, value: u64, mode: u64) -> u64 {
        let id = (table as usize, key);
        if mode == 1 && self.tables.contains_key(&id) {
            return u64::MAX;
        }
        let bytes = u64::from(table.shape().value_bytes);
        let value = (0..bytes).map(|at| self.read(value + at, 1) as u8).collect();
        self.values.push(value);
        self.tables.insert(id, self.values.len() - 1);
        0
    }

    fn memory(&mut self, address: u64, bytes: usize) -> &mut [u8] {
        let (memory, at) = match address {
            VALUES.. => {
                let (index, at) = ((address - VALUES) / ROOM, (address - VALUES) % ROOM);
                (&mut self.values[index as usize][..], at)
            }
            ARGUMENTS.. => (&mut self.arguments[..], address - ARGUMENTS),
            _ => (&mut self.stack[..], address.checked_sub(STACK).expect("an address")),
        };
        &mut memory[at as usize..][..bytes]
    }

    fn read(&mut self, address: u64, bytes: usize) -> u64 {
        let mut word = [0; 8];
        word[..bytes].copy_from_slice(self.memory(address, bytes));
        u64::from_le_bytes(word)
    }

    fn write(&mut self, address: u64, bytes: usize, value: u64) {
        self.memory(address, bytes).copy_from_slice(&value.to_le_bytes()[..bytes]);
    }
}

fn calculated(operation: u8, one: u64, other: u64) -> u64 {
    match operation {
        0x00 => one.wrapping_add(other),
        0x10 => one.wrapping_sub(other),
        0x50 => one & other,
        0x60 => one << (other & 63),
        0x70 => one >> (other & 63),
        0xb0 => other,
        _ => panic!("operation {operation:#x}"),
    }
}

fn changed(change: u8, old: u64, with: u64) -> u64 {
    match change {
        0x00 => old.wrapping_add(with),
        0x50 => old & with,
        _ => panic!("atomic operation {change:#x}"),
    }
}

fn holds(condition: u8, one: u64, other: u64) -> bool {
    match condition {
        0x00 => true,
        0x10 => one == other,
        0x20 => one > other,
        0x50 => one != other,
        0xc0 => (one as i64) < other as i64,
        _ => panic!("condition {condition:#x}"),
    }
}
