//! A small encoder of baseline JPEG (ITU-T T.81: sequential DCT, 8 bits, one scan) in a JFIF file: three
//! components without subsampling, the typical tables of Annex K, a comment that fills the file to its size.
//!
//! Integers only, so that every machine writes the same bytes. No other pictures than multiples of 8 pixels.

use std::array;

/// Red, green and blue, row by row.
pub(super) struct Picture {
    pub(super) width: u16,
    pub(super) height: u16,
    pub(super) pixels: Vec<[u8; 3]>,
}

/// The side of a block.
const SIDE: usize = 8;

/// The coefficients of a block in the order of rising frequency: T.81, figure A.6.
#[rustfmt::skip]
pub(super) const ZIGZAG: [usize; 64] = [
     0,  1,  8, 16,  9,  2,  3, 10, 17, 24, 32, 25, 18, 11,  4,  5,
    12, 19, 26, 33, 40, 48, 41, 34, 27, 20, 13,  6,  7, 14, 21, 28,
    35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23, 30, 37, 44, 51,
    58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63,
];

/// Table K.1.
#[rustfmt::skip]
const LUMINANCE: [i32; 64] = [
    16, 11, 10, 16,  24,  40,  51,  61,
    12, 12, 14, 19,  26,  58,  60,  55,
    14, 13, 16, 24,  40,  57,  69,  56,
    14, 17, 22, 29,  51,  87,  80,  62,
    18, 22, 37, 56,  68, 109, 103,  77,
    24, 35, 55, 64,  81, 104, 113,  92,
    49, 64, 78, 87, 103, 121, 120, 101,
    72, 92, 95, 98, 112, 100, 103,  99,
];

/// Table K.2.
#[rustfmt::skip]
const CHROMINANCE: [i32; 64] = [
    17, 18, 24, 47, 99, 99, 99, 99,
    18, 21, 26, 66, 99, 99, 99, 99,
    24, 26, 56, 99, 99, 99, 99, 99,
    47, 66, 99, 99, 99, 99, 99, 99,
    99, 99, 99, 99, 99, 99, 99, 99,
    99, 99, 99, 99, 99, 99, 99, 99,
    99, 99, 99, 99, 99, 99, 99, 99,
    99, 99, 99, 99, 99, 99, 99, 99,
];

/// A Huffman table as a file has it: how many codes of 1 to 16 bits, and what they stand for.
struct HuffmanTable {
    counts: [u8; 16],
    symbols: &'static [u8],
}

/// Tables K.3 and K.5: sizes of DC differences, luminance and chrominance.
const DC: [HuffmanTable; 2] = [
    HuffmanTable {
        counts: [0, 1, 5, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0],
        symbols: &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11],
    },
    HuffmanTable {
        counts: [0, 3, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0],
        symbols: &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11],
    },
];

/// Tables K.4 and K.6: runs of zeros and sizes of AC coefficients, luminance and chrominance.
#[rustfmt::skip]
const AC: [HuffmanTable; 2] = [
    HuffmanTable {
        counts: [0, 2, 1, 3, 3, 2, 4, 3, 5, 5, 4, 4, 0, 0, 1, 125],
        symbols: &[
            0x01, 0x02, 0x03, 0x00, 0x04, 0x11, 0x05, 0x12, 0x21, 0x31, 0x41, 0x06, 0x13, 0x51, 0x61, 0x07,
            0x22, 0x71, 0x14, 0x32, 0x81, 0x91, 0xa1, 0x08, 0x23, 0x42, 0xb1, 0xc1, 0x15, 0x52, 0xd1, 0xf0,
            0x24, 0x33, 0x62, 0x72, 0x82, 0x09, 0x0a, 0x16, 0x17, 0x18, 0x19, 0x1a, 0x25, 0x26, 0x27, 0x28,
            0x29, 0x2a, 0x34, 0x35, 0x36, 0x37, 0x38, 0x39, 0x3a, 0x43, 0x44, 0x45, 0x46, 0x47, 0x48, 0x49,
            0x4a, 0x53, 0x54, 0x55, 0x56, 0x57, 0x58, 0x59, 0x5a, 0x63, 0x64, 0x65, 0x66, 0x67, 0x68, 0x69,
            0x6a, 0x73, 0x74, 0x75, 0x76, 0x77, 0x78, 0x79, 0x7a, 0x83, 0x84, 0x85, 0x86, 0x87, 0x88, 0x89,
            0x8a, 0x92, 0x93, 0x94, 0x95, 0x96, 0x97, 0x98, 0x99, 0x9a, 0xa2, 0xa3, 0xa4, 0xa5, 0xa6, 0xa7,
            0xa8, 0xa9, 0xaa, 0xb2, 0xb3, 0xb4, 0xb5, 0xb6, 0xb7, 0xb8, 0xb9, 0xba, 0xc2, 0xc3, 0xc4, 0xc5,
            0xc6, 0xc7, 0xc8, 0xc9, 0xca, 0xd2, 0xd3, 0xd4, 0xd5, 0xd6, 0xd7, 0xd8, 0xd9, 0xda, 0xe1, 0xe2,
            0xe3, 0xe4, 0xe5, 0xe6, 0xe7, 0xe8, 0xe9, 0xea, 0xf1, 0xf2, 0xf3, 0xf4, 0xf5, 0xf6, 0xf7, 0xf8,
            0xf9, 0xfa,
        ],
    },
    HuffmanTable {
        counts: [0, 2, 1, 2, 4, 4, 3, 4, 7, 5, 4, 4, 0, 1, 2, 119],
        symbols: &[
            0x00, 0x01, 0x02, 0x03, 0x11, 0x04, 0x05, 0x21, 0x31, 0x06, 0x12, 0x41, 0x51, 0x07, 0x61, 0x71,
            0x13, 0x22, 0x32, 0x81, 0x08, 0x14, 0x42, 0x91, 0xa1, 0xb1, 0xc1, 0x09, 0x23, 0x33, 0x52, 0xf0,
            0x15, 0x62, 0x72, 0xd1, 0x0a, 0x16, 0x24, 0x34, 0xe1, 0x25, 0xf1, 0x17, 0x18, 0x19, 0x1a, 0x26,
            0x27, 0x28, 0x29, 0x2a, 0x35, 0x36, 0x37, 0x38, 0x39, 0x3a, 0x43, 0x44, 0x45, 0x46, 0x47, 0x48,
            0x49, 0x4a, 0x53, 0x54, 0x55, 0x56, 0x57, 0x58, 0x59, 0x5a, 0x63, 0x64, 0x65, 0x66, 0x67, 0x68,
            0x69, 0x6a, 0x73, 0x74, 0x75, 0x76, 0x77, 0x78, 0x79, 0x7a, 0x82, 0x83, 0x84, 0x85, 0x86, 0x87,
            0x88, 0x89, 0x8a, 0x92, 0x93, 0x94, 0x95, 0x96, 0x97, 0x98, 0x99, 0x9a, 0xa2, 0xa3, 0xa4, 0xa5,
            0xa6, 0xa7, 0xa8, 0xa9, 0xaa, 0xb2, 0xb3, 0xb4, 0xb5, 0xb6, 0xb7, 0xb8, 0xb9, 0xba, 0xc2, 0xc3,
            0xc4, 0xc5, 0xc6, 0xc7, 0xc8, 0xc9, 0xca, 0xd2, 0xd3, 0xd4, 0xd5, 0xd6, 0xd7, 0xd8, 0xd9, 0xda,
            0xe2, 0xe3, 0xe4, 0xe5, 0xe6, 0xe7, 0xe8, 0xe9, 0xea, 0xf2, 0xf3, 0xf4, 0xf5, 0xf6, 0xf7, 0xf8,
            0xf9, 0xfa,
        ],
    },
];

/// The symbol for sixteen zeros, and the one for zeros to the end of the block.
const SIXTEEN_ZEROS: usize = 0xf0;
const END_OF_BLOCK: usize = 0x00;

/// The largest AC coefficient that baseline has a code for.
const COEFFICIENT_MAX: i32 = 1023;

/// Start of image and the JFIF segment: version 1.1, square pixels, no thumbnail.
const START: &[u8] = b"\xff\xd8\xff\xe0\x00\x10JFIF\x00\x01\x01\x00\x00\x01\x00\x01\x00\x00";
const END: &[u8] = b"\xff\xd9";
const FILLING: &[u8] = b"A comment that fills this picture to its size. ";

/// The marker and the length in front of a segment's payload.
const SEGMENT_HEADER_BYTES: usize = 4;

/// The picture in exactly so many bytes, at the quality of Annex K's tables scaled by so many per cent.
///
/// # Panics
///
/// If what is encoded leaves less room than an empty comment, or more than the largest one.
pub(super) fn encode(picture: &Picture, scale_percent: i32, file_bytes: usize) -> Vec<u8> {
    let quotients = [LUMINANCE, CHROMINANCE].map(|table| table.map(|step| scaled(step, scale_percent)));
    let mut rest = Vec::with_capacity(file_bytes);
    append_headers(&mut rest, picture, &quotients);
    rest.extend(encode_scan(picture, &quotients));
    rest.extend_from_slice(END);
    let comment_bytes = file_bytes.checked_sub(START.len() + rest.len() + SEGMENT_HEADER_BYTES);
    let comment_bytes = comment_bytes.expect("a picture smaller than its file");
    let comment: Vec<u8> = FILLING.iter().copied().cycle().take(comment_bytes).collect();
    let mut file = START.to_vec();
    append_segment(&mut file, 0xfe, &comment);
    file.append(&mut rest);
    file
}

fn scaled(step: i32, scale_percent: i32) -> i32 {
    ((step * scale_percent + 50) / 100).clamp(1, 255)
}

fn append_segment(file: &mut Vec<u8>, marker: u8, payload: &[u8]) {
    let length = u16::try_from(payload.len() + 2).expect("a segment of at most 65,533 bytes");
    file.extend_from_slice(&[0xff, marker]);
    file.extend_from_slice(&length.to_be_bytes());
    file.extend_from_slice(payload);
}

/// Quantisation tables, frame, Huffman tables and the header of the scan (T.81, B.2).
fn append_headers(file: &mut Vec<u8>, picture: &Picture, quotients: &[[i32; 64]; 2]) {
    let mut tables = Vec::new();
    for (id, table) in (0..).zip(quotients) {
        tables.push(id);
        tables.extend(ZIGZAG.map(|index| table[index] as u8));
    }
    append_segment(file, 0xdb, &tables);

    let mut frame = vec![8];
    frame.extend(picture.height.to_be_bytes());
    frame.extend(picture.width.to_be_bytes());
    // Three components: number, sampling factors, quantisation table.
    frame.extend([3, 1, 0x11, 0, 2, 0x11, 1, 3, 0x11, 1]);
    append_segment(file, 0xc0, &frame);

    let mut tables = Vec::new();
    for (class, pair) in [(0x00, &DC), (0x10, &AC)] {
        for (id, table) in (0..).zip(pair) {
            tables.push(class | id);
            tables.extend_from_slice(&table.counts);
            tables.extend_from_slice(table.symbols);
        }
    }
    append_segment(file, 0xc4, &tables);

    // Three components with their Huffman tables; all coefficients, at full precision.
    append_segment(file, 0xda, &[3, 1, 0x00, 2, 0x11, 3, 0x11, 0, 63, 0]);
}

fn encode_scan(picture: &Picture, quotients: &[[i32; 64]; 2]) -> Vec<u8> {
    let (width, height) = (usize::from(picture.width), usize::from(picture.height));
    assert!(width.is_multiple_of(SIDE) && height.is_multiple_of(SIDE), "whole blocks");
    let codes = [0, 1].map(|id| (Codes::new(&DC[id]), Codes::new(&AC[id])));
    let mut bits = BitWriter::default();
    let mut dc_before = [0; 3];
    for top in (0..height).step_by(SIDE) {
        for left in (0..width).step_by(SIDE) {
            let block: [[i32; 3]; 64] = array::from_fn(|index| {
                let (row, column) = (top + index / SIDE, left + index % SIDE);
                components(picture.pixels[row * width + column])
            });
            for (component, before) in dc_before.iter_mut().enumerate() {
                let id = component.min(1);
                let coefficients = transform(&block.map(|pixel| pixel[component]), &quotients[id]);
                bits.put_block(&coefficients, *before, &codes[id].0, &codes[id].1);
                *before = coefficients[0];
            }
        }
    }
    bits.finish()
}

/// Luminance and the two colour differences, all around zero: the equations of JFIF in 16 fractional bits.
fn components([red, green, blue]: [u8; 3]) -> [i32; 3] {
    let (red, green, blue) = (i32::from(red), i32::from(green), i32::from(blue));
    // One less than a half keeps the largest difference at 127.
    let rounded = |sum: i32| (sum + 0x7fff) >> 16;
    [
        rounded(19_595 * red + 38_470 * green + 7_471 * blue) - 128,
        rounded(-11_059 * red - 21_709 * green + 32_768 * blue),
        rounded(32_768 * red - 27_439 * green - 5_329 * blue),
    ]
}

/// Half the cosine of so many sixteenths of a half turn, in 13 fractional bits.
const fn half_cosine(sixteenths: usize) -> i32 {
    const QUARTER: [i32; 9] = [4096, 4017, 3784, 3406, 2896, 2276, 1567, 799, 0];
    match sixteenths % 32 {
        angle @ 0..=8 => QUARTER[angle],
        angle @ 9..=16 => -QUARTER[16 - angle],
        angle @ 17..=24 => -QUARTER[angle - 16],
        angle => QUARTER[32 - angle],
    }
}

/// `BASIS[frequency][place]` of T.81, A.3.3, for one dimension.
const BASIS: [[i32; SIDE]; SIDE] = {
    let mut basis = [[half_cosine(4); SIDE]; SIDE];
    let mut frequency = 1;
    while frequency < SIDE {
        let mut place = 0;
        while place < SIDE {
            basis[frequency][place] = half_cosine((2 * place + 1) * frequency);
            place += 1;
        }
        frequency += 1;
    }
    basis
};

/// Forward DCT of a block of samples, divided and rounded, in zigzag order.
fn transform(samples: &[i32; 64], quotients: &[i32; 64]) -> [i32; 64] {
    // The rows keep 4 fractional bits; the columns add 13.
    let rows: [i32; 64] = array::from_fn(|index| {
        let row = &samples[index / SIDE * SIDE..][..SIDE];
        let sum: i32 = row.iter().zip(&BASIS[index % SIDE]).map(|(sample, basis)| sample * basis).sum();
        (sum + (1 << 8)) >> 9
    });
    ZIGZAG.map(|index| {
        let column = rows[index % SIDE..].iter().step_by(SIDE);
        let sum: i32 = column.zip(&BASIS[index / SIDE]).map(|(sample, basis)| sample * basis).sum();
        let divisor = quotients[index] << 17;
        let quotient = (sum.abs() + divisor / 2) / divisor;
        (quotient * sum.signum()).clamp(-COEFFICIENT_MAX, COEFFICIENT_MAX)
    })
}

/// A Huffman table by symbol: code and its length in bits (T.81, Annex C).
struct Codes([(u32, u32); 256]);

impl Codes {
    fn new(table: &HuffmanTable) -> Self {
        let mut codes = [(0, 0); 256];
        let mut symbols = table.symbols.iter();
        let mut code = 0;
        for (bits, count) in (1..).zip(table.counts) {
            for symbol in symbols.by_ref().take(usize::from(count)) {
                codes[usize::from(*symbol)] = (code, bits);
                code += 1;
            }
            code <<= 1;
        }
        Self(codes)
    }
}

/// The entropy-coded part of a scan (T.81, F.1.2).
#[derive(Default)]
struct BitWriter {
    bytes: Vec<u8>,
    pending: u64,
    pending_bits: u32,
}

impl BitWriter {
    fn put_block(&mut self, coefficients: &[i32; 64], dc_before: i32, dc: &Codes, ac: &Codes) {
        self.put_number(dc, 0, coefficients[0] - dc_before);
        let mut zeros = 0;
        for coefficient in &coefficients[1..] {
            if *coefficient == 0 {
                zeros += 1;
                continue;
            }
            for _ in 0..zeros / 16 {
                self.put_symbol(ac, SIXTEEN_ZEROS);
            }
            self.put_number(ac, zeros % 16, *coefficient);
            zeros = 0;
        }
        if zeros > 0 {
            self.put_symbol(ac, END_OF_BLOCK);
        }
    }

    /// A symbol of zeros in front and bits in the number, and these bits: a negative number is one less.
    fn put_number(&mut self, codes: &Codes, zeros: usize, number: i32) {
        let bits = 32 - number.unsigned_abs().leading_zeros();
        self.put_symbol(codes, zeros << 4 | bits as usize);
        let low = number - i32::from(number < 0);
        self.put(low as u32 & ((1 << bits) - 1), bits);
    }

    fn put_symbol(&mut self, codes: &Codes, symbol: usize) {
        let (code, bits) = codes.0[symbol];
        debug_assert!(bits > 0, "symbol {symbol:#x} has no code");
        self.put(code, bits);
    }

    fn put(&mut self, value: u32, bits: u32) {
        self.pending = self.pending << bits | u64::from(value);
        self.pending_bits += bits;
        while self.pending_bits >= 8 {
            self.pending_bits -= 8;
            let byte = (self.pending >> self.pending_bits) as u8;
            self.bytes.push(byte);
            if byte == 0xff {
                // Else it would look like a marker.
                self.bytes.push(0);
            }
        }
    }

    /// Ones up to the end of the last byte.
    fn finish(mut self) -> Vec<u8> {
        let missing = (8 - self.pending_bits) % 8;
        self.put((1 << missing) - 1, missing);
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::{super::jpeg_reader, *};

    fn picture(width: u16, height: u16, colour: impl Fn(usize, usize) -> [u8; 3]) -> Picture {
        let (columns, rows) = (usize::from(width), usize::from(height));
        let pixels = (0..columns * rows).map(|index| colour(index % columns, index / columns)).collect();
        Picture { width, height, pixels }
    }

    #[test]
    fn tables_are_as_long_as_their_counts_and_have_no_symbol_twice() {
        for table in DC.iter().chain(&AC) {
            let count: usize = table.counts.iter().map(|count| usize::from(*count)).sum();
            let mut symbols = table.symbols.to_vec();
            symbols.sort_unstable();
            symbols.dedup();
            assert_eq!((table.symbols.len(), symbols.len()), (count, count));
        }
        let mut places = ZIGZAG;
        places.sort_unstable();
        assert_eq!(places, array::from_fn(|index| index));
    }

    #[test]
    fn a_flat_block_is_its_mean_and_nothing_else() {
        let coefficients = transform(&[100; 64], &[1; 64]);
        assert_eq!(coefficients[0], 800);
        assert!(coefficients[1..].iter().all(|coefficient| *coefficient == 0));
    }

    #[test]
    fn the_transform_is_that_of_the_standard() {
        let samples: [i32; 64] = array::from_fn(|index| ((index * index * 37) % 256) as i32 - 128);
        let found = transform(&samples, &[1; 64]);
        for (place, index) in ZIGZAG.into_iter().enumerate() {
            let (v, u) = (index / 8, index % 8);
            let scale = |frequency: usize| if frequency == 0 { 0.5_f64.sqrt() } else { 1.0 };
            let cosine = |place: usize, frequency: usize| {
                ((2 * place + 1) as f64 * frequency as f64 * std::f64::consts::PI / 16.0).cos()
            };
            let sum: f64 = samples
                .iter()
                .enumerate()
                .map(|(index, sample)| f64::from(*sample) * cosine(index % 8, u) * cosine(index / 8, v))
                .sum();
            let expected = sum * scale(u) * scale(v) / 4.0;
            assert!(
                (f64::from(found[place]) - expected).abs() < 0.75,
                "{place}: {} {expected}",
                found[place]
            );
        }
    }

    #[test]
    fn colours_and_edges_come_back() {
        let colours = [[255, 0, 0], [0, 255, 0], [0, 0, 255], [255, 255, 255], [0, 0, 0], [250, 200, 20]];
        let drawn = picture(48, 16, |x, y| colours[(x / 8 + y / 8) % 6]);
        let file = jpeg_reader::read(&encode(&drawn, 10, 4000)).expect("a baseline JPEG");
        assert_eq!((file.width, file.height, file.pixels.len()), (48, 16, 48 * 16));
        for (drawn, read) in drawn.pixels.iter().zip(&file.pixels) {
            assert!(
                drawn.iter().zip(read).all(|(drawn, read)| drawn.abs_diff(*read) <= 4),
                "{drawn:?} {read:?}"
            );
        }
    }

    #[test]
    fn extreme_blocks_have_codes() {
        // Every pixel black or white, by a pattern without period: the largest coefficients and long runs.
        let drawn =
            picture(64, 64, |x, y| [if (x * x * 7 + y * y * 13 + x * y) % 5 < 2 { 255 } else { 0 }; 3]);
        for scale_percent in [1, 10, 100, 1000] {
            let file = jpeg_reader::read(&encode(&drawn, scale_percent, 20_000)).expect("a baseline JPEG");
            assert_eq!(file.pixels.len(), 64 * 64);
        }
    }

    #[test]
    fn the_comment_fills_the_file_to_any_size_there_is_room_for() {
        let drawn = picture(8, 8, |_, _| [9, 9, 9]);
        let comment_bytes = |file_bytes| {
            let file = encode(&drawn, 100, file_bytes);
            assert_eq!(file.len(), file_bytes);
            jpeg_reader::read(&file).expect("a baseline JPEG").comment_bytes
        };
        let least = 10_000 - comment_bytes(10_000);
        for comment in [0, 1, 65_533] {
            assert_eq!(comment_bytes(least + comment), comment);
        }
    }
}
