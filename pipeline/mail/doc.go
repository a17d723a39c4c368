// Package mail streams messages out of a weekly export: mbox, Maildir, folders of .eml files, CSV,
// JSON Lines and JSON, plain or compressed or in archives. Each [Message] carries its place in the
// source, so that any record can be cut out again ([Cut]); [Labels.Identify] adds who it is and
// which queue it belongs to.
//
// Two promises hold for every source. Nothing is lost: the byte ranges of records and separators
// cover the uncompressed stream without gap or overlap, and a record that cannot be used is a
// Message with a [Reject], never an error and never silence. And memory is flat: what is held is
// one record and a read buffer, bounded by [Limits], whatever the size of the export.
//
// [Reader.Next] runs in one goroutine and only splits; identifying a message and turning it into
// text (package text) are for many.
package mail
