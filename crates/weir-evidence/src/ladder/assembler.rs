//! Assembler for the kernel's BPF virtual machine. Pure: nothing is loaded here.
//!
//! Source: `Documentation/bpf/standardization/instruction-set.rst`. An instruction has eight bytes, little-endian:
//! opcode, two registers, an offset of 16 bits and an immediate of 32 bits. Only the instructions that the programs
//! use are here.
//!
//! The programs are short, and an assembler of a few hundred lines leaves nothing to install: no compiler, no kernel
//! headers, no tracefs.

use super::{kernel::Kernel, tables::Table};

/// A register. Calls clobber `R1` to `R5`; `R0` holds their result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Register {
    R0,
    R1,
    R2,
    R3,
    R4,
    R6 = 6,
    R7,
    R8,
    R9,
    /// The end of the stack, which grows down from it.
    Frame,
}

/// Width of a value in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Width {
    Four = 0x00,
    Eight = 0x18,
}

/// Arithmetic on 64 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operation {
    Add = 0x00,
    Subtract = 0x10,
    And = 0x50,
    ShiftLeft = 0x60,
    ShiftRight = 0x70,
    Move = 0xb0,
}

/// When a jump is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Condition {
    Equal = 0x10,
    Above = 0x20,
    NotEqual = 0x50,
    /// As signed numbers.
    Less = 0xc0,
}

/// Kernel helper functions; the numbers are those of `include/uapi/linux/bpf.h`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Helper {
    MapLookup = 1,
    MapUpdate = 2,
    MapDelete = 3,
    MonotonicNs = 5,
    CurrentIds = 14,
    CurrentName = 16,
    CurrentTask = 35,
    ReadKernel = 113,
    /// Reads up to a zero byte; returns the length including it.
    ReadUserText = 114,
    /// Like [`Self::CurrentIds`] in a PID namespace, written to memory: thread, then process.
    IdsInNamespace = 120,
}

/// An atomic operation on a word of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Atomic {
    Add = 0x00,
    And = 0x50,
}

/// A jump target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Label(usize);

/// A program whose tables have no descriptors yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Assembled {
    words: Vec<u64>,
    tables: Vec<(usize, Table)>,
}

impl Assembled {
    /// The instructions, with each table's descriptor number in this process.
    pub(super) fn linked(&self, number_of: impl Fn(Table) -> i32) -> Vec<u64> {
        let mut words = self.words.clone();
        for (index, table) in &self.tables {
            words[*index] |= u64::from(number_of(*table) as u32) << 32;
        }
        words
    }
}

/// A sequence of instructions.
#[derive(Debug, Default)]
pub(super) struct Assembler {
    words: Vec<u64>,
    tables: Vec<(usize, Table)>,
    labels: Vec<Option<usize>>,
    jumps: Vec<(usize, Label)>,
    kernel: Kernel,
}

fn word(operation: u8, to: Register, from: Register, offset: i16, number: i32) -> u64 {
    let registers = to as u8 | (from as u8) << 4;
    u64::from(operation)
        | u64::from(registers) << 8
        | u64::from(offset as u16) << 16
        | u64::from(number as u32) << 32
}

/// Placeholder for an unused field.
const NONE: Register = Register::R0;

impl Assembler {
    /// Sets the target kernel.
    pub(super) fn on(self, kernel: Kernel) -> Self {
        Self { kernel, ..self }
    }

    /// The target kernel.
    pub(super) fn kernel(&self) -> Kernel {
        self.kernel
    }

    /// `to = number`, zero-extended.
    pub(super) fn set_unsigned(&mut self, to: Register, number: u32) {
        self.set(to, number as i32);
        self.with_number(Operation::ShiftLeft, to, 32);
        self.with_number(Operation::ShiftRight, to, 32);
    }

    /// `to = to <operation> number`.
    pub(super) fn with_number(&mut self, operation: Operation, to: Register, number: i32) {
        self.words.push(word(0x07 | operation as u8, to, NONE, 0, number));
    }

    /// `to = to <operation> from`.
    pub(super) fn with(&mut self, operation: Operation, to: Register, from: Register) {
        self.words.push(word(0x0f | operation as u8, to, from, 0, 0));
    }

    /// `to = from`.
    pub(super) fn copy(&mut self, to: Register, from: Register) {
        self.with(Operation::Move, to, from);
    }

    /// `to = number`.
    pub(super) fn set(&mut self, to: Register, number: i32) {
        self.with_number(Operation::Move, to, number);
    }

    /// `to = memory[base + offset]`.
    pub(super) fn load(&mut self, width: Width, to: Register, base: Register, offset: i16) {
        self.words.push(word(0x61 | width as u8, to, base, offset, 0));
    }

    /// `memory[base + offset] = from`.
    pub(super) fn store(&mut self, width: Width, base: Register, offset: i16, from: Register) {
        self.words.push(word(0x63 | width as u8, base, from, offset, 0));
    }

    /// `memory[base + offset] = number`.
    pub(super) fn store_number(&mut self, width: Width, base: Register, offset: i16, number: i32) {
        self.words.push(word(0x62 | width as u8, base, NONE, offset, number));
    }

    /// `memory[base + offset] += from` in eight bytes that no other CPU writes; clobbers `scratch`.
    pub(super) fn add_to(&mut self, base: Register, offset: i16, from: Register, scratch: Register) {
        self.load(Width::Eight, scratch, base, offset);
        self.with(Operation::Add, scratch, from);
        self.store(Width::Eight, base, offset, scratch);
    }

    /// The same with a number.
    pub(super) fn add_number_to(&mut self, base: Register, offset: i16, number: i32, scratch: Register) {
        self.load(Width::Eight, scratch, base, offset);
        self.with_number(Operation::Add, scratch, number);
        self.store(Width::Eight, base, offset, scratch);
    }

    /// Changes eight bytes that other CPUs may also change.
    pub(super) fn atomically(&mut self, change: Atomic, base: Register, offset: i16, from: Register) {
        self.words.push(word(0xdb, base, from, offset, change as i32));
    }

    /// A label that is bound later.
    pub(super) fn label(&mut self) -> Label {
        self.labels.push(None);
        Label(self.labels.len() - 1)
    }

    /// Binds the label to this position.
    pub(super) fn bind(&mut self, label: Label) {
        self.labels[label.0] = Some(self.words.len());
    }

    /// Jumps if the condition holds between register and number.
    pub(super) fn jump_if(&mut self, condition: Condition, register: Register, number: i32, to: Label) {
        self.jumps.push((self.words.len(), to));
        self.words.push(word(0x05 | condition as u8, register, NONE, 0, number));
    }

    /// Jumps.
    pub(super) fn jump(&mut self, to: Label) {
        self.jumps.push((self.words.len(), to));
        self.words.push(word(0x05, NONE, NONE, 0, 0));
    }

    /// Calls a helper function, with arguments from `R1` on.
    pub(super) fn call(&mut self, helper: Helper) {
        self.words.push(word(0x85, NONE, NONE, 0, helper as i32));
    }

    /// `to = table`, which takes two instructions.
    pub(super) fn table(&mut self, to: Register, table: Table) {
        self.tables.push((self.words.len(), table));
        // A source register of 1 marks the number as a descriptor.
        self.words.push(word(0x18, to, Register::R1, 0, 0));
        self.words.push(0);
    }

    /// `R0 =` the address of a value whose key is on the stack, or 0.
    pub(super) fn lookup(&mut self, table: Table, key_offset: i16) {
        self.table(Register::R1, table);
        self.address(Register::R2, key_offset);
        self.call(Helper::MapLookup);
    }

    /// `to =` an address on the stack.
    pub(super) fn address(&mut self, to: Register, offset: i16) {
        self.copy(to, Register::Frame);
        self.with_number(Operation::Add, to, offset.into());
    }

    /// Ends the program with result 0, which tracepoints ignore.
    pub(super) fn exit(&mut self) {
        self.set(Register::R0, 0);
        self.words.push(word(0x95, NONE, NONE, 0, 0));
    }

    /// The program, with all jumps resolved.
    ///
    /// # Panics
    /// Panics if a label was never bound, which is a bug in this crate.
    pub(super) fn finish(mut self) -> Assembled {
        for (index, label) in &self.jumps {
            let target = self.labels[label.0].expect("every label is bound");
            let distance = target as i64 - *index as i64 - 1;
            let distance = i16::try_from(distance).expect("programs are short");
            self.words[*index] |= u64::from(distance as u16) << 16;
        }
        Assembled { words: self.words, tables: self.tables }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes in the specification's order.
    fn bytes(words: &[u64]) -> Vec<[u8; 8]> {
        words.iter().map(|word| word.to_le_bytes()).collect()
    }

    #[test]
    fn instructions_are_encoded_as_the_specification_has_them() {
        let mut it = Assembler::default();
        it.set(Register::R0, -1);
        it.copy(Register::R6, Register::R1);
        it.load(Width::Eight, Register::R1, Register::R6, 8);
        it.store(Width::Four, Register::Frame, -4, Register::R7);
        it.store_number(Width::Eight, Register::R9, 16, 5);
        it.with_number(Operation::ShiftRight, Register::R7, 32);
        it.atomically(Atomic::Add, Register::R0, 0, Register::R1);
        it.atomically(Atomic::And, Register::R0, 8, Register::R1);
        it.call(Helper::CurrentIds);
        assert_eq!(
            bytes(&it.finish().words),
            [
                [0xb7, 0x00, 0, 0, 0xff, 0xff, 0xff, 0xff],
                [0xbf, 0x16, 0, 0, 0, 0, 0, 0],
                [0x79, 0x61, 8, 0, 0, 0, 0, 0],
                [0x63, 0x7a, 0xfc, 0xff, 0, 0, 0, 0],
                [0x7a, 0x09, 16, 0, 5, 0, 0, 0],
                [0x77, 0x07, 0, 0, 32, 0, 0, 0],
                [0xdb, 0x10, 0, 0, 0, 0, 0, 0],
                [0xdb, 0x10, 8, 0, 0x50, 0, 0, 0],
                [0x85, 0x00, 0, 0, 14, 0, 0, 0],
            ]
        );
    }

    #[test]
    fn jumps_count_from_the_instruction_behind_them() {
        let mut it = Assembler::default();
        let (back, forth) = (it.label(), it.label());
        it.bind(back);
        it.jump_if(Condition::Equal, Register::R0, 0, forth);
        it.jump(back);
        it.bind(forth);
        it.exit();
        let expected = [
            [0x15, 0x00, 1, 0, 0, 0, 0, 0],
            [0x05, 0x00, 0xfe, 0xff, 0, 0, 0, 0],
            [0xb7, 0x00, 0, 0, 0, 0, 0, 0],
            [0x95, 0x00, 0, 0, 0, 0, 0, 0],
        ];
        assert_eq!(bytes(&it.finish().words), expected);
    }

    #[test]
    fn tables_get_their_numbers_where_the_program_is_linked() {
        let mut it = Assembler::default();
        it.table(Register::R1, Table::Calls);
        let words = it.finish().linked(|table| if table == Table::Calls { 7 } else { 0 });
        assert_eq!(bytes(&words), [[0x18, 0x11, 0, 0, 7, 0, 0, 0], [0; 8]]);
    }
}
