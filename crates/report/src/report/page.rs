//! The page put together: template, style, script, data.
//!
//! Safety: the content security policy lets only the script and the style run
//! whose hashes it names, and lets nothing be loaded from anywhere. Data is
//! compressed JSON as base64, in elements that are never executed, so that none
//! of its characters can end them; the script shows it as text only.

use super::blob::pack;
use crate::draw::style;
use crate::view::DERIVED_FROM;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;
use sha2::{Digest, Sha256};

const TEMPLATE: &str = include_str!("page.html");
const STYLE: &str = include_str!("style.css");
/// What precedes the colours by night.
const DARK: &str = ":root[data-theme=\"dark\"]";
/// In this order, in one scope of their own.
const SCRIPTS: [&str; 10] = [
    include_str!("base.js"),
    include_str!("ticks.js"),
    include_str!("draw.js"),
    include_str!("charts.js"),
    include_str!("trace.js"),
    include_str!("explorer.js"),
    include_str!("views.js"),
    include_str!("profile.js"),
    include_str!("jobs.js"),
    include_str!("main.js"),
];

/// A page made from what `derived_from` stands for, of `facts` (as [`inert`] makes them) and a blob for each trace by its
/// run's number.
pub(crate) fn assemble(derived_from: &str, facts: &str, blobs: &[(u32, &str)]) -> String {
    let script = format!("\"use strict\";(() => {{\n{}}})();", SCRIPTS.concat());
    let look = format!("{STYLE}{}{DARK} {{ {}}}\n", style::css(), style::colours(true));
    let hash = |text: &str| format!("'sha256-{}'", STANDARD.encode(Sha256::digest(text.as_bytes())));
    let policy = format!(
        "default-src 'none'; script-src {}; style-src {}; img-src data:; base-uri 'none'; form-action 'none'",
        hash(&script),
        hash(&look)
    );
    let derived = format!("{DERIVED_FROM}{derived_from}\">");
    let mut data = String::with_capacity(blobs.iter().map(|b| b.1.len() + 80).sum());
    for (run, blob) in blobs {
        data.push_str(&format!("<script type=\"text/plain\" id=\"trace-{run}\">"));
        data.push_str(blob);
        data.push_str("</script>\n");
    }
    // Each mark is replaced by text that was made here, in one walk over the
    // template, so that no data is ever searched for marks.
    let mut page =
        String::with_capacity(TEMPLATE.len() + script.len() + look.len() + facts.len() + data.len() + 4096);
    for piece in TEMPLATE.split("@@") {
        page.push_str(match piece {
            "DERIVED" => &derived,
            "POLICY" => &policy,
            "STYLE" => &look,
            "FACTS" => facts,
            "TRACES" => &data,
            "SCRIPT" => &script,
            other => other,
        });
    }
    page
}

/// `value` as base64 of compressed JSON: no character of it means anything to
/// a browser.
pub(crate) fn inert(value: &impl Serialize) -> String {
    // Everything given here has string keys only, which is all that can fail.
    pack(&serde_json::to_vec(value).unwrap_or_else(|_| b"null".to_vec()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_text_stays_inside_its_element_and_comes_back() {
        let hostile = "</script><script>alert(1)</script><!-- & \u{2028} \" ' @@SCRIPT@@";
        let text = inert(&hostile);
        assert!(text.bytes().all(|b| b.is_ascii_alphanumeric() || b"+/=".contains(&b)), "{text}");
        let back = super::super::blob::tests::unpack(&text);
        assert_eq!(serde_json::from_slice::<String>(&back).unwrap(), hostile);
        let page = assemble("", &text, &[]);
        assert_eq!(page.matches("<script").count(), assemble("", "", &[]).matches("<script").count());
        assert!(page.contains(&text));
    }
}
