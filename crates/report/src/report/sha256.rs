//! SHA-256, for the hashes by which the page's content security policy names
//! its own script and style.
//!
//! Source: FIPS 180-4, sections 4.1.2, 4.2.2, 5.1.1 and 6.2. The constants are
//! computed as the standard defines them: the first 32 bits of the fractional
//! parts of the square and cube roots of the first primes.

/// The digest of `bytes`.
pub(crate) fn sha256(bytes: &[u8]) -> [u8; 32] {
    let constants = round_constants();
    let mut hash = initial();
    let mut message = bytes.to_vec();
    message.push(0x80);
    while message.len() % 64 != 56 {
        message.push(0);
    }
    message.extend((bytes.len() as u64 * 8).to_be_bytes());
    for block in message.chunks_exact(64) {
        compress(&mut hash, block, &constants);
    }
    let mut digest = [0; 32];
    for (to, word) in digest.chunks_exact_mut(4).zip(hash) {
        to.copy_from_slice(&word.to_be_bytes());
    }
    digest
}

fn primes() -> impl Iterator<Item = u128> {
    (2u128..).filter(|n| (2..*n).take_while(|d| d * d <= *n).all(|d| n % d != 0))
}

/// The first 32 bits after the point of the `power`th root of `n`: the largest
/// whole r with r^power <= n x 2^(32 x power), less its whole part.
fn fraction_of_root(n: u128, power: u32) -> u32 {
    let (target, mut root) = (n << (32 * power), 0u128);
    for bit in (0..37).rev() {
        let larger = root | 1 << bit;
        if larger.pow(power) <= target {
            root = larger;
        }
    }
    root as u32
}

fn initial() -> [u32; 8] {
    let mut primes = primes();
    std::array::from_fn(|_| fraction_of_root(primes.next().unwrap_or(2), 2))
}

fn round_constants() -> [u32; 64] {
    let mut primes = primes();
    std::array::from_fn(|_| fraction_of_root(primes.next().unwrap_or(2), 3))
}

fn compress(hash: &mut [u32; 8], block: &[u8], constants: &[u32; 64]) {
    let mut words = [0u32; 64];
    for (word, bytes) in words.iter_mut().zip(block.chunks_exact(4)) {
        *word = u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
    }
    for t in 16..64 {
        let (w15, w2) = (words[t - 15], words[t - 2]);
        let s0 = w15.rotate_right(7) ^ w15.rotate_right(18) ^ (w15 >> 3);
        let s1 = w2.rotate_right(17) ^ w2.rotate_right(19) ^ (w2 >> 10);
        words[t] = words[t - 16].wrapping_add(s0).wrapping_add(words[t - 7]).wrapping_add(s1);
    }
    let [mut a, mut b, mut c, mut d, mut e, mut f, mut g, mut h] = *hash;
    for t in 0..64 {
        let s1 = e.rotate_right(6) ^ e.rotate_right(11) ^ e.rotate_right(25);
        let choice = (e & f) ^ (!e & g);
        let t1 = h.wrapping_add(s1).wrapping_add(choice).wrapping_add(constants[t]).wrapping_add(words[t]);
        let s0 = a.rotate_right(2) ^ a.rotate_right(13) ^ a.rotate_right(22);
        let t2 = s0.wrapping_add((a & b) ^ (a & c) ^ (b & c));
        (h, g, f, e, d, c, b, a) = (g, f, e, d.wrapping_add(t1), c, b, a, t1.wrapping_add(t2));
    }
    for (old, new) in hash.iter_mut().zip([a, b, c, d, e, f, g, h]) {
        *old = old.wrapping_add(new);
    }
}

#[cfg(test)]
mod tests {
    use super::sha256;

    fn hex(bytes: &[u8]) -> String {
        sha256(bytes).iter().map(|b| format!("{b:02x}")).collect()
    }

    #[test]
    fn the_standards_examples() {
        assert_eq!(hex(b"abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        assert_eq!(hex(b""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
        assert_eq!(
            hex(b"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"
        );
        assert_eq!(
            hex(&[b'a'; 1_000_000]),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"
        );
    }
}
