package mail

import (
	"context"
	"time"
)

// Options say how an export is read. Zero fields mean defaults.
type Options struct {
	Format Format
	Preset string            // "", zendesk, freshdesk, takeout
	Map    map[string]string // role (id, subject, body, html, date, label, routed, thread) to column; wins over the preset
	Groups map[string]string // help-desk group id to queue name
	Labels Labels
	Limits Limits
	// Remote gives the file system that holds an export which is no path of this machine, and its name
	// there; a nil file system says that it is one. Nil: every export is a path.
	Remote func(ctx context.Context, path string) (FileSystem, string, error)
}

// Sources of a label, in their default order.
const (
	LabelFile   = "file"
	LabelHeader = "header"
	LabelGmail  = "gmail"
	LabelColumn = "column"
	LabelFolder = "folder"
)

// Labels say where a message's true queue, and the deployed router's, are written.
type Labels struct {
	From         []string   // sources to try in order; nil: file, header, gmail, column, folder
	File         *LabelList // of LabelFile
	Header       string     // of LabelHeader; empty: X-Queue
	RoutedHeader string     // header with the deployed router's queue
	Zone         *time.Location
}
