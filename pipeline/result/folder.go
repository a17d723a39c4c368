package result

// Names of the files of a run folder.
const (
	ResultsFile  = "results.parquet"
	ReadingsFile = "readings.parquet"
	RejectsFile  = "rejects.parquet"
	TimingsFile  = "timings.parquet"
	MeasuredFile = "timings.json"
)

// Folder is a finished run, read back whole. Rows, Readings and Rejects are in the order of the
// messages. Measured and Timings are empty where the folder has none.
type Folder struct {
	Run      Run
	Rows     []Row
	Readings []Reading
	Rejects  []Reject
	Measured *Measured
}
