package result

// Names of the files of a run folder.
const (
	ResultsFile  = "results.parquet"
	ReadingsFile = "readings.parquet"
	RejectsFile  = "rejects.parquet"
	TimingsFile  = "timings.parquet"
	MeasuredFile = "timings.json"
	// PartialDir holds the segments of a run that is not finished.
	PartialDir = ".partial"
)
