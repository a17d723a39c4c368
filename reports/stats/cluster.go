package stats

import "math"

// Design is a rate of misroutes over messages that come in clusters (threads): messages of a
// cluster tend to be right or wrong together, and count for less than as many independent ones.
type Design struct {
	K, N     int
	Clusters int     // that hold at least one message
	Effect   float64 // the design effect, at least 1
}

// Effective is the number of independent messages that would know the rate as well.
func (d Design) Effective() float64 { return float64(d.N) / math.Max(1, d.Effect) }

// Rate is K/N, undefined without messages.
func (d Design) Rate() Ratio { return Ratio{d.K, d.N} }

// Interval is the Wilson interval of the rate at the effective n.
func (d Design) Interval(z float64) Interval {
	if d.N == 0 {
		return Interval{0, 1}
	}
	n := d.Effective()
	i := WilsonAt(float64(d.K)/float64(d.N)*n, n, z)
	if d.K == 0 {
		i.Low = 0
	}
	if d.K == d.N {
		i.High = 1
	}
	return i
}

// DesignEffect returns the rate over clusters with its design effect: the variance of the ratio
// K/N between clusters (linearised, Cochran 1977 section 11.5) over that of as many independent
// messages, and at least 1. When all messages are right, or all wrong, or there is a single
// cluster, the data cannot show how messages of a cluster depend on each other; the effect then is
// its largest possible value, that of clusters with one mind (sum of squared sizes over n).
func DesignEffect(clusters []Group) Design {
	d := Design{Effect: 1}
	squares := 0.0
	for _, c := range clusters {
		if c.N == 0 {
			continue
		}
		d.K += c.K
		d.N += c.N
		d.Clusters++
		squares += float64(c.N) * float64(c.N)
	}
	if d.N == 0 {
		return d
	}
	n, p := float64(d.N), float64(d.K)/float64(d.N)
	if d.K == 0 || d.K == d.N || d.Clusters == 1 {
		d.Effect = math.Max(1, squares/n)
		return d
	}
	sum := 0.0
	for _, c := range clusters {
		residual := float64(c.K) - p*float64(c.N)
		sum += residual * residual
	}
	m := float64(d.Clusters)
	d.Effect = math.Max(1, m/(m-1)*sum/(n*n)/(p*(1-p)/n))
	return d
}

// PairCluster counts the paired outcomes of the messages of one cluster.
type PairCluster struct {
	B, C, N int // baseline right and candidate wrong; the other way; all messages
}

// Paired is the comparison of two runs, or of two readings, over the same messages.
type Paired struct {
	McNemarResult
	N        int     `json:"n"`
	Clusters int     `json:"clusters"`
	Effect   float64 `json:"design_effect"`
	Alpha    float64 `json:"alpha"`
	// Difference is the misroute rate of the candidate minus that of the baseline, (B-C)/N, with
	// the Bonett-Price interval at the effective n.
	Difference float64        `json:"difference"`
	Interval   Interval       `json:"interval"`
	Cluster    SignFlipResult `json:"cluster"`
}

// P is the p that decides. Mid-p treats messages as independent; where it and the test by cluster
// fall on different sides of alpha, the test by cluster counts, so it is the one that decides.
func (p *Paired) P() float64 { return p.Cluster.P }

// Decided says whether the difference is told from chance at Alpha.
func (p *Paired) Decided() bool { return p.P() < p.Alpha }

// Disagree says whether mid-p and the p by cluster fall on different sides of Alpha.
func (p *Paired) Disagree() bool { return (p.MidP < p.Alpha) != (p.Cluster.P < p.Alpha) }

// ComparePaired tests two runs over clusters of messages. Alpha 0 is [DefaultAlpha].
func ComparePaired(clusters []PairCluster, alpha float64, o Resampling) Paired {
	if alpha <= 0 {
		alpha = DefaultAlpha
	}
	p := Paired{Alpha: alpha}
	b, c := 0, 0
	differences := make([]float64, 0, len(clusters))
	for _, k := range clusters {
		if k.N == 0 {
			continue
		}
		b += k.B
		c += k.C
		p.N += k.N
		p.Clusters++
		if k.B != k.C {
			differences = append(differences, float64(k.B-k.C))
		}
	}
	p.McNemarResult = McNemar(b, c)
	p.Effect = pairedEffect(clusters, b, c, p.N, p.Clusters)
	p.Difference, p.Interval = BonettPriceAt(b, c, p.N, p.Effect, ZOf(alpha))
	p.Cluster = ClusterSignFlip(differences, o)
	return p
}

// pairedEffect is the design effect of a difference of paired rates, at least 1: the variance of
// the mean difference between clusters over that of as many independent pairs. With nothing
// changed, or a single cluster, it is the largest possible one, as in [DesignEffect].
func pairedEffect(clusters []PairCluster, b, c, pairs, count int) float64 {
	if pairs == 0 {
		return 1
	}
	n := float64(pairs)
	d := float64(b-c) / n
	independent := (float64(b+c)/n - d*d) / n
	squares, sum := 0.0, 0.0
	for _, k := range clusters {
		squares += float64(k.N) * float64(k.N)
		residual := float64(k.B-k.C) - d*float64(k.N)
		sum += residual * residual
	}
	if count == 1 || independent <= 0 {
		return math.Max(1, squares/n)
	}
	m := float64(count)
	return math.Max(1, m/(m-1)*sum/(n*n)/independent)
}
