//! Markdown → HTML: no raw HTML, no pictures from elsewhere, only links that a reader can judge.

use pulldown_cmark::{Event, HeadingLevel, LinkType, Options, Parser, Tag, TagEnd, html};

/// As HTML; the first heading gets an id.
pub fn html_of(markdown: &str, id: &str) -> String {
    let options = Options::ENABLE_TABLES
        | Options::ENABLE_STRIKETHROUGH
        | Options::ENABLE_TASKLISTS
        | Options::ENABLE_GFM;
    let mut id = Some(id.to_owned());
    // Of each link that is open: whether it stays one.
    let mut links: Vec<bool> = Vec::new();
    let mut out = Vec::new();
    for event in Parser::new_ext(markdown, options) {
        match event {
            Event::Html(text) | Event::InlineHtml(text) => out.push(Event::Text(text)),
            Event::Start(Tag::HtmlBlock) => out.push(Event::Start(Tag::Paragraph)),
            Event::End(TagEnd::HtmlBlock) => out.push(Event::End(TagEnd::Paragraph)),
            Event::Start(Tag::Image { .. }) | Event::End(TagEnd::Image) => {}
            Event::Start(Tag::Link {
                link_type,
                ref dest_url,
                ..
            }) => {
                let stays = is_sound(link_type, dest_url);
                links.push(stays);
                if stays {
                    out.push(event);
                }
            }
            Event::End(TagEnd::Link) => {
                if links.pop() == Some(true) {
                    out.push(event);
                }
            }
            Event::Start(Tag::Heading { level, .. }) => out.push(Event::Start(Tag::Heading {
                level,
                id: id.take_if(|_| level <= HeadingLevel::H3).map(Into::into),
                classes: Vec::new(),
                attrs: Vec::new(),
            })),
            Event::Start(Tag::Table(_)) => {
                out.push(Event::Html("<div class=\"scroll\">".into()));
                out.push(event);
            }
            Event::End(TagEnd::Table) => {
                out.push(event);
                out.push(Event::Html("</div>\n".into()));
            }
            other => out.push(other),
        }
    }
    let mut text = String::new();
    html::push_html(&mut text, out.into_iter());
    text
}

fn is_sound(link: LinkType, to: &str) -> bool {
    let to = to.trim().to_ascii_lowercase();
    matches!(link, LinkType::Email)
        || ["http://", "https://", "mailto:"]
            .iter()
            .any(|scheme| to.starts_with(scheme))
}

/// Its first heading of the second level, as plain text.
pub fn heading(markdown: &str) -> Option<String> {
    let line = markdown.lines().find_map(|line| line.strip_prefix("## "))?;
    Some(line.trim().to_owned())
}

/// The text of some Markdown without its markup, on one line.
pub fn plain(markdown: &str) -> String {
    let mut out = String::new();
    for event in Parser::new(markdown) {
        match event {
            Event::Text(text) | Event::Code(text) | Event::Html(text) | Event::InlineHtml(text) => {
                out.push_str(&text)
            }
            Event::SoftBreak
            | Event::HardBreak
            | Event::End(TagEnd::Paragraph | TagEnd::Heading(_)) => out.push(' '),
            _ => {}
        }
    }
    out.trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_let_through() {
        let text = html_of(
            "<script>x</script>\n\na <img src=x onerror=y> [ok](https://a.example/?q=1&r) [bad](javascript:alert) \
             ![pic](https://b.example/p.png) <mailto:a@b.example> <data:text/html,x>",
            "part",
        );
        assert!(
            !text.contains("<script") && !text.contains("<img"),
            "{text}"
        );
        assert!(text.contains("&lt;script&gt;x&lt;/script&gt;"), "{text}");
        assert!(
            text.contains("<a href=\"https://a.example/?q=1&amp;r\">ok</a> bad pic"),
            "{text}"
        );
        assert!(
            text.contains("mailto:a@b.example") && !text.contains("href=\"data:"),
            "{text}"
        );
    }

    #[test]
    fn a_heading_has_the_parts_name() {
        assert_eq!(
            html_of("## A *b*\n\n### C\n", "part"),
            "<h2 id=\"part\">A <em>b</em></h2>\n<h3>C</h3>\n"
        );
        assert_eq!(heading("x\n## A b\n"), Some("A b".into()));
        assert_eq!(plain("# A **b** `c`\n\nd"), "A b c d");
    }
}
