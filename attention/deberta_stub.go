package attention
type relativeScores struct{}
func (r *relativeScores) add(scores []float32, ld int, q []float32, ldq, i, n int) {}
