package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"misroute/pipeline/object"
	"misroute/pipeline/result"
)

// readRuns reads the run in dir, or, when dir holds no run itself, every run in the folders below
// it, in the order of their names: a folder of weekly runs. A run that is not finished is an error,
// never a run with fewer messages.
func readRuns(ctx context.Context, dir string) ([]*result.Folder, error) {
	if object.IsAddress(dir) {
		return runsInBucket(ctx, dir)
	}
	if _, err := os.Stat(filepath.Join(dir, result.ResultsFile)); err == nil {
		f, err := result.ReadFolder(dir)
		if err != nil {
			return nil, err
		}
		return []*result.Folder{f}, nil
	}
	if _, err := os.Stat(filepath.Join(dir, result.PartialDir)); err == nil {
		_, err := result.ReadFolder(dir) // says that the run is not finished, and how to finish it
		if err == nil {
			err = fmt.Errorf("%s: the run was finished while it was read: try again", dir)
		}
		return nil, err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		if errors.Is(err, os.ErrNotExist) {
			return nil, fmt.Errorf("%s: no such folder: name a run (what eval --out made) or a folder of runs", dir)
		}
		return nil, fmt.Errorf("%s: not a folder of runs: %w", dir, err)
	}
	var runs []*result.Folder
	for _, e := range entries {
		sub := filepath.Join(dir, e.Name())
		if !isRun(sub) {
			continue
		}
		f, err := result.ReadFolder(sub)
		if err != nil {
			return nil, err
		}
		runs = append(runs, f)
	}
	if len(runs) == 0 {
		return nil, fmt.Errorf("%s: no run here: neither %s nor a folder with one", dir, result.ResultsFile)
	}
	return runs, nil
}

// isRun says whether dir looks like a run, finished or not.
func isRun(dir string) bool {
	for _, name := range []string{result.ResultsFile, result.PartialDir} {
		if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
			return true
		}
	}
	return false
}
