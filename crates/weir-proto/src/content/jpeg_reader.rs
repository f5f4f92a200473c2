//! Reads what the encoder writes, for tests: from the file alone, with its own arithmetic.
//!
//! It checks the order and length of every segment, that no bit of the scan is left over, and that the picture
//! is complete. Baseline JPEG with three components that are not subsampled; nothing else.

use std::{collections::HashMap, f64::consts::PI};

use super::jpeg::ZIGZAG;

pub(super) struct File {
    pub(super) width: u16,
    pub(super) height: u16,
    pub(super) pixels: Vec<[u8; 3]>,
    pub(super) comment_bytes: usize,
}

/// Symbols by length and code.
type HuffmanTable = HashMap<(u32, u32), u8>;

#[derive(Default)]
struct Tables {
    quotients: HashMap<u8, Vec<u8>>,
    /// By class and number, as the file writes them: 0x00 and 0x01 for DC, 0x10 and 0x11 for AC.
    codes: HashMap<u8, HuffmanTable>,
}

pub(super) fn read(bytes: &[u8]) -> Result<File, String> {
    let mut rest = bytes.strip_prefix(b"\xff\xd8").ok_or("no start of image")?;
    let mut tables = Tables::default();
    let mut size = None;
    let (mut markers, mut comment_bytes) = (Vec::new(), 0);
    loop {
        let [0xff, marker, high, low, ..] = *rest else { return Err("no segment".into()) };
        let end = 2 + usize::from(u16::from_be_bytes([high, low]));
        let (payload, behind) = (rest.get(4..end).ok_or("a segment cut off")?, &rest[end..]);
        markers.push(marker);
        rest = behind;
        match marker {
            0xe0 if payload.starts_with(b"JFIF\0\x01") && payload.len() == 14 => {}
            0xfe => comment_bytes = payload.len(),
            0xdb => read_quotients(payload, &mut tables)?,
            0xc4 => read_codes(payload, &mut tables)?,
            0xc0 => size = Some(read_frame(payload)?),
            0xda if payload == [3, 1, 0, 2, 0x11, 3, 0x11, 0, 63, 0] => break,
            _ => return Err(format!("segment {marker:#x}: {payload:x?}")),
        }
    }
    if markers != [0xe0, 0xfe, 0xdb, 0xc0, 0xc4, 0xda] {
        return Err(format!("segments {markers:x?}"));
    }
    let (width, height) = size.ok_or("no frame")?;
    let scan = rest.strip_suffix(b"\xff\xd9").ok_or("no end of image")?;
    let pixels = read_scan(scan, &tables, usize::from(width), usize::from(height))?;
    Ok(File { width, height, pixels, comment_bytes })
}

fn read_quotients(mut payload: &[u8], tables: &mut Tables) -> Result<(), String> {
    while let [id @ 0..=3, rest @ ..] = payload {
        let (table, rest) = rest.split_at_checked(64).ok_or("a quantisation table cut off")?;
        if table.contains(&0) || tables.quotients.insert(*id, table.into()).is_some() {
            return Err("a quantisation table with zeros, or twice".into());
        }
        payload = rest;
    }
    if payload.is_empty() { Ok(()) } else { Err("quantisation tables".into()) }
}

fn read_codes(mut payload: &[u8], tables: &mut Tables) -> Result<(), String> {
    while let [id, rest @ ..] = payload {
        let (counts, mut rest) = rest.split_at_checked(16).ok_or("a Huffman table cut off")?;
        let (mut table, mut code) = (HashMap::new(), 0);
        for (bits, count) in (1..).zip(counts) {
            let (symbols, behind) = rest.split_at_checked(usize::from(*count)).ok_or("no symbols")?;
            for symbol in symbols {
                table.insert((bits, code), *symbol);
                code += 1;
            }
            // The code of ones alone is never given out.
            if code >= 1 << bits {
                return Err("too many codes".into());
            }
            code <<= 1;
            rest = behind;
        }
        if tables.codes.insert(*id, table).is_some() {
            return Err("a Huffman table twice".into());
        }
        payload = rest;
    }
    Ok(())
}

fn read_frame(payload: &[u8]) -> Result<(u16, u16), String> {
    match *payload {
        [8, a, b, c, d, 3, 1, 0x11, 0, 2, 0x11, 1, 3, 0x11, 1] => {
            Ok((u16::from_be_bytes([c, d]), u16::from_be_bytes([a, b])))
        }
        _ => Err(format!("frame {payload:x?}")),
    }
}

fn read_scan(scan: &[u8], tables: &Tables, width: usize, height: usize) -> Result<Vec<[u8; 3]>, String> {
    let mut bits = Bits::new(scan)?;
    let mut pixels = vec![[0; 3]; width * height];
    let mut dc_before = [0; 3];
    for top in (0..height).step_by(8) {
        for left in (0..width).step_by(8) {
            let mut planes = [[0.0; 64]; 3];
            for (component, plane) in planes.iter_mut().enumerate() {
                let id = component.min(1) as u8;
                let coefficients = bits.block(&tables.codes[&id], &tables.codes[&(0x10 | id)])?;
                dc_before[component] += coefficients[0];
                let mut values = [0.0; 64];
                for (place, coefficient) in coefficients.into_iter().enumerate() {
                    let step = f64::from(tables.quotients[&id][place]);
                    let whole = if place == 0 { dc_before[component] } else { coefficient };
                    values[ZIGZAG[place]] = f64::from(whole) * step;
                }
                *plane = inverse(&values);
            }
            for (index, place) in (0..64).map(|index| (index, (top + index / 8) * width + left + index % 8)) {
                pixels[place] = rgb(planes[0][index] + 128.0, planes[1][index], planes[2][index]);
            }
        }
    }
    bits.finish()?;
    Ok(pixels)
}

/// The inverse transform of T.81, A.3.3, first by columns, then by rows.
fn inverse(values: &[f64; 64]) -> [f64; 64] {
    let basis: [[f64; 8]; 8] = std::array::from_fn(|place| {
        std::array::from_fn(|frequency| {
            let scale = if frequency == 0 { 0.5_f64.sqrt() } else { 1.0 };
            scale / 2.0 * ((2 * place + 1) as f64 * frequency as f64 * PI / 16.0).cos()
        })
    });
    let columns: [f64; 64] =
        std::array::from_fn(|index| (0..8).map(|v| values[8 * v + index % 8] * basis[index / 8][v]).sum());
    std::array::from_fn(|index| (0..8).map(|u| columns[index / 8 * 8 + u] * basis[index % 8][u]).sum())
}

fn rgb(y: f64, cb: f64, cr: f64) -> [u8; 3] {
    [y + 1.402 * cr, y - 0.344_136 * cb - 0.714_136 * cr, y + 1.772 * cb]
        .map(|level| level.round().clamp(0.0, 255.0) as u8)
}

/// The bits of a scan.
struct Bits {
    bytes: Vec<u8>,
    taken: usize,
}

impl Bits {
    /// Takes the stuffed zeros out.
    fn new(scan: &[u8]) -> Result<Self, String> {
        let mut bytes = Vec::new();
        let mut rest = scan.iter();
        while let Some(byte) = rest.next() {
            bytes.push(*byte);
            if *byte == 0xff && rest.next() != Some(&0) {
                return Err("a marker in the scan".into());
            }
        }
        Ok(Self { bytes, taken: 0 })
    }

    fn bit(&mut self) -> Result<u32, String> {
        let byte = self.bytes.get(self.taken / 8).ok_or("the scan is too short")?;
        let bit = byte >> (7 - self.taken % 8) & 1;
        self.taken += 1;
        Ok(bit.into())
    }

    fn symbol(&mut self, table: &HuffmanTable) -> Result<u8, String> {
        let mut code = 0;
        for bits in 1..=16 {
            code = code << 1 | self.bit()?;
            if let Some(symbol) = table.get(&(bits, code)) {
                return Ok(*symbol);
            }
        }
        Err("a code without symbol".into())
    }

    /// T.81, F.2.2.1: the upper half of the patterns are the positive numbers.
    fn number(&mut self, bits: u8) -> Result<i32, String> {
        let mut value = 0;
        for _ in 0..bits {
            value = value << 1 | self.bit()? as i32;
        }
        let positive = bits == 0 || value >> (bits - 1) == 1;
        Ok(if positive { value } else { value + 1 - (1 << bits) })
    }

    fn block(&mut self, dc: &HuffmanTable, ac: &HuffmanTable) -> Result<[i32; 64], String> {
        let mut coefficients = [0; 64];
        let bits = self.symbol(dc)?;
        coefficients[0] = self.number(bits)?;
        let mut place = 1;
        while place < 64 {
            let symbol = self.symbol(ac)?;
            let (zeros, bits) = (usize::from(symbol >> 4), symbol & 15);
            if symbol == 0 {
                break;
            }
            place += zeros;
            *coefficients.get_mut(place).ok_or("too many coefficients")? = self.number(bits)?;
            place += 1;
        }
        Ok(coefficients)
    }

    /// Nothing may be left but ones up to the end of the byte.
    fn finish(mut self) -> Result<(), String> {
        let left = self.bytes.len() * 8 - self.taken;
        for _ in 0..left {
            if left > 7 || self.bit()? == 0 {
                return Err(format!("{left} bits are left over"));
            }
        }
        Ok(())
    }
}
