package mail

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// Cut writes the bytes [offset, offset+length) of an export's uncompressed stream to w: the record
// that a row or reject points to. member is the path inside a folder or archive, as Message.Member
// has it; empty for a plain file.
func Cut(ctx context.Context, w io.Writer, path, member string, offset, length int64) error {
	if offset < 0 || length < 0 {
		return fmt.Errorf("%s: offset and length cannot be negative", path)
	}
	limits := DefaultLimits()
	limits.Expansion = 1 << 40 // a person asked for these bytes
	r, done, err := openMember(path, member, &limits)
	if err != nil {
		return err
	}
	defer done()
	if err := skip(ctx, r, offset); err != nil {
		return fmt.Errorf("%s: %w", path, atOffset(err, "ends before byte", offset))
	}
	n, err := io.CopyN(w, r, length)
	if err != nil {
		return fmt.Errorf("%s: %w", path, atOffset(err, "ends at byte", offset+n))
	}
	return nil
}

func atOffset(err error, what string, at int64) error {
	if err == io.EOF {
		return fmt.Errorf("the stream %s %d", what, at)
	}
	return err
}

// skip passes over n bytes in steps that notice a cancelled context.
func skip(ctx context.Context, r io.Reader, n int64) error {
	for n > 0 {
		if err := ctx.Err(); err != nil {
			return err
		}
		m, err := io.CopyN(io.Discard, r, min(n, 64<<20))
		if n -= m; err != nil {
			return err
		}
	}
	return nil
}

// openMember opens the uncompressed stream of a member.
func openMember(path, member string, l *Limits) (io.Reader, func(), error) {
	if path == "-" {
		r, err := descend(os.Stdin, "stdin", member, l)
		return r, func() {}, err
	}
	st, err := os.Stat(path)
	if err != nil {
		return nil, nil, &SourceError{Source: path, What: plainOSError(err)}
	}
	if st.IsDir() {
		file, rest, err := fileInDir(path, member)
		if err != nil {
			return nil, nil, err
		}
		path, member = file, rest
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, nil, &SourceError{Source: path, What: plainOSError(err)}
	}
	r, err := descend(f, filepath.Base(path), member, l)
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	return r, func() { f.Close() }, nil
}

// fileInDir finds the file of a folder that member starts with; the rest lies inside that file.
func fileInDir(root, member string) (file, rest string, err error) {
	if member == "" {
		return "", "", &SourceError{Source: root, What: "is a folder", Do: "name the file in it with --member"}
	}
	parts := strings.Split(member, "/")
	for i := range parts {
		rel := filepath.FromSlash(strings.Join(parts[:i+1], "/"))
		if !filepath.IsLocal(rel) {
			break
		}
		if st, err := os.Lstat(filepath.Join(root, rel)); err != nil || st.Mode().IsRegular() {
			if err != nil {
				break
			}
			return filepath.Join(root, rel), strings.Join(parts[i+1:], "/"), nil
		}
	}
	return "", "", &SourceError{Source: root, What: "has no file " + member}
}

// descend unpacks r and goes into archives until member is used up.
func descend(r io.Reader, name, member string, l *Limits) (io.Reader, error) {
	u, _, err := unpack(r, name, l)
	if err != nil || member == "" {
		return u, err
	}
	s := newStream(u)
	s.fill(detectBytes)
	missing := &SourceError{Source: name, What: "has no member " + member}
	switch detectFormat(s.window(), "") {
	case FormatTar:
		for t := tar.NewReader(s); ; {
			h, err := t.Next()
			if errors.Is(err, io.EOF) {
				return nil, missing
			}
			if err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			if rest, ok := inside(h.Name, member); ok {
				return descend(t, h.Name, rest, l)
			}
		}
	case FormatZip:
		z, err := spoolZip(s, &Options{Limits: *l}, 0)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		for _, f := range z.z.File {
			if rest, ok := inside(f.Name, member); ok {
				rc, err := f.Open()
				if err != nil {
					return nil, fmt.Errorf("%s: %w", name, err)
				}
				return descend(rc, f.Name, rest, l)
			}
		}
	}
	return nil, missing
}

// inside says whether member is the entry, or lies in it, and what remains of its path.
func inside(entry, member string) (rest string, ok bool) {
	clean, _ := memberName(entry)
	if clean == member {
		return "", true
	}
	return strings.CutPrefix(member, clean+"/")
}
