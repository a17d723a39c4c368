package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
)

// levels are the words of --log. What ends a job is told anyway, by the program itself.
var levels = map[string]slog.Level{
	"none": slog.LevelError + 1, "error": slog.LevelError, "warn": slog.LevelWarn, "info": slog.LevelInfo, "debug": slog.LevelDebug,
}

// newLog shows Beam's own messages from the level on, one a line, in the program's style.
func newLog(level string, w io.Writer) (*slog.Logger, error) {
	l, known := levels[level]
	if !known {
		return nil, usagef("--log %s: want none, error, warn, info or debug", level)
	}
	return slog.New(&lineHandler{level: l, w: w, mu: new(sync.Mutex)}), nil
}

// lineHandler writes "misroute-beam: level: message key=value", a record a line.
type lineHandler struct {
	level slog.Level
	mu    *sync.Mutex
	w     io.Writer
	attrs []slog.Attr
}

func (h *lineHandler) Enabled(_ context.Context, l slog.Level) bool { return l >= h.level }

func (h *lineHandler) Handle(_ context.Context, r slog.Record) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s: %s", name, strings.ToLower(r.Level.String()), strings.Join(strings.Fields(r.Message), " "))
	add := func(a slog.Attr) bool {
		fmt.Fprintf(&b, " %s=%s", a.Key, strings.Join(strings.Fields(a.Value.String()), " "))
		return true
	}
	for _, a := range h.attrs {
		add(a)
	}
	r.Attrs(add)
	h.mu.Lock()
	defer h.mu.Unlock()
	_, err := fmt.Fprintln(h.w, b.String())
	return err
}

func (h *lineHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	n := *h
	n.attrs = append(n.attrs[:len(n.attrs):len(n.attrs)], attrs...)
	return &n
}

func (h *lineHandler) WithGroup(string) slog.Handler { return h }
