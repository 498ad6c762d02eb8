# Payloads of 100 bytes to 100 KB that cannot be compressed. A claim hands the payload out and does
# not write it again: the log of a drain does not grow with it.
package Bench::Workload::Payloads;

use strict;
use warnings;

use Bench::Load;
use Bench::Pulse;

use constant BATCH => 100;

# Bytes, and jobs.
my @sizes = ([100, 40_000], [1_000, 40_000], [10_000, 5_000], [100_000, 500]);

# Of 32 characters each, a digest of its place.
sub fill_statement {
    my ($bytes, $jobs) = @_;
    my $digests = int(($bytes - 10 + 31) / 32);
    return qq{SELECT count(*) FROM pulse.add_jobs(ARRAY(SELECT ROW('no_op',
        json_build_object('data', (SELECT string_agg(md5(i || '-' || j), '')
            FROM generate_series(1, $digests) AS j)),
        NULL, NULL, NULL, NULL, NULL, NULL)::pulse.job_spec FROM generate_series(1, $jobs) AS i))};
}

sub size_text { my ($bytes) = @_; return $bytes < 1000 ? "$bytes B" : $bytes / 1000 . ' KB' }

sub measure {
    my ($at) = @_;
    Bench::Pulse::create($at, 'postgres');
    my $runs = Bench::Load::in_turn($at, map { {
        name => "bytes.$_->[0]", database => 'postgres', jobs => $_->[1], batch => BATCH,
        fill => fill_statement(@$_)
    } } @sizes);
    for my $size (@sizes) {
        for my $run (@{$runs->{"bytes.$size->[0]"}}) {
            $run->{megabytes} = $run->{rate} * $size->[0] / 1e6;
            $run->{wal} = $run->{cost}{wal_bytes};
        }
    }
    return $runs;
}

sub rows {
    return map { (
        { name => "payloads.rate.$_->[0]", what => size_text($_->[0]), ours => "bytes.$_->[0]" },
        { name => "payloads.bytes.$_->[0]", what => '  of payload', ours => "bytes.$_->[0]",
          figure => 'megabytes', unit => 'MB/s' },
        { name => "payloads.wal.$_->[0]", what => '  log of claim and end, against 100 B',
          ours => "bytes.$_->[0]", against => 'bytes.100', figure => 'wal', unit => 'B/job' },
    ) } @sizes;
}

return {
    title => 'drain of jobs with payloads, batches of 100',
    is_long => 1,
    figure => 'rate',
    unit => 'jobs/s',
    rows => \&rows,
    labels => sub { return map { ("bytes.$_->[0]" => size_text($_->[0])) } @sizes },
    measure => \&measure,
};
