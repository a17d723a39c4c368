// Package text turns a message into the text a router should read: transfer encodings, charsets,
// MIME parts, HTML, quoted replies and signatures, each with a record of what was dropped or
// guessed.
//
// It walks multiparts itself instead of building a tree with a MIME library: a message of one plain
// part, the most common kind, costs one scan of its header, and every bound of [mail.Limits] is
// checked while walking, before memory or time is spent. What a part says about itself is a hint;
// the bytes decide.
package text
