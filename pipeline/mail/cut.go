package mail

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Cut writes the bytes [offset, offset+length) of an export's uncompressed stream to w: the record
// that a row or reject points to. member is the path inside a folder or archive, as Message.Member
// has it; empty for a plain file. Of the options only Remote counts. What comes before is read over only
// where the stream is compressed.
func Cut(ctx context.Context, w io.Writer, path, member string, offset, length int64, o Options) error {
	if offset < 0 || length < 0 {
		return fmt.Errorf("%s: offset and length cannot be negative", path)
	}
	o.Limits = DefaultLimits()
	o.Limits.Expansion = 1 << 40 // a person asked for these bytes
	r, done, err := openMember(ctx, path, member, &o)
	if err != nil {
		return err
	}
	defer done()
	if s, ok := r.(io.Seeker); ok {
		// Seeking beyond the end is no error; reading the byte before says where the end is.
		if _, err := s.Seek(max(offset-1, 0), io.SeekStart); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		err = skip(ctx, r, min(offset, 1))
	} else {
		err = skip(ctx, r, offset)
	}
	if err != nil {
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

// openMember opens the uncompressed stream of a member; an io.Seeker where any place of it can be had at
// once.
func openMember(ctx context.Context, path, member string, o *Options) (io.Reader, func(), error) {
	if path == "-" {
		r, err := descend(os.Stdin, "stdin", member, &o.Limits)
		return r, func() {}, err
	}
	files, name, err := o.locate(ctx, path)
	if err != nil {
		return nil, nil, err
	}
	_, local := files.(machine)
	fail := func(err error) (io.Reader, func(), error) {
		if local {
			err = &SourceError{Source: path, What: plainOSError(err)}
		}
		return nil, nil, err
	}
	st, err := files.Stat(name)
	if err != nil {
		return fail(err)
	}
	if st.IsDir() {
		file, rest, err := fileInDir(files, path, name, member)
		if err != nil {
			return nil, nil, err
		}
		name, member = file, rest
		if st, err = files.Stat(name); err != nil {
			return fail(err)
		}
	}
	f, err := files.Open(name)
	if err != nil {
		return fail(err)
	}
	done := func() { f.Close() }
	if parts, ok := f.(io.ReaderAt); ok && member == "" && st.Mode().IsRegular() {
		whole := io.NewSectionReader(parts, 0, st.Size())
		if _, how, err := unpack(io.NewSectionReader(parts, 0, st.Size()), name, &o.Limits); err == nil && how == "" {
			return whole, done, nil
		}
	}
	r, err := descend(f, st.Name(), member, &o.Limits)
	if err != nil {
		done()
		return nil, nil, err
	}
	return r, done, nil
}

// fileInDir finds the file of a folder that member starts with; the rest lies inside that file.
func fileInDir(files FileSystem, path, root, member string) (file, rest string, err error) {
	if member == "" {
		return "", "", &SourceError{Source: path, What: "is a folder", Do: "name the file in it with --member"}
	}
	stat := files.Stat
	if _, local := files.(machine); local { // links are not followed
		stat = func(name string) (fs.FileInfo, error) { return os.Lstat(filepath.FromSlash(name)) }
	}
	parts := strings.Split(member, "/")
	for i := range parts {
		rel := strings.Join(parts[:i+1], "/")
		if !filepath.IsLocal(filepath.FromSlash(rel)) {
			break
		}
		if st, err := stat(below(root, rel)); err != nil || st.Mode().IsRegular() {
			if err != nil {
				break
			}
			return below(root, rel), strings.Join(parts[i+1:], "/"), nil
		}
	}
	return "", "", &SourceError{Source: path, What: "has no file " + member}
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
