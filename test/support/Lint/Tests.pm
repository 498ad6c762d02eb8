package Lint::Tests;

# What every test keeps to, and what the list of statements and the mutants say of tests.
use strict;
use warnings;
use File::Basename qw(basename);
use Lint::Tree qw(found findings slurp files sources is_of_lint each_line_of_code);

# What measures speed, the steps of jobs that workers under test run, and the pace of loops that a
# test ends by a state.
my $may_wait = qr{^test/(?:bench/|protocol/(?:act|workers)/|e2e/Pulse/SqlLoop\.pm$)};

# A test that waits by time is slow or flaky, most often both.
sub check_tests {
    my $by_time = qr/\b(?:pg_sleep(?:_for|_until)?|usleep|nanosleep|sleep_for|sleep_until)\b
        |(?:^|[\s;&|(`'"])sleep\s*(?:[\d\$("']|$)|\bselect\s*\(?\s*undef\b/x;
    each_line_of_code(
        sub { found($_[0], 'waits by time; wait for a state or a line of the log') if /$by_time/ },
        grep { m{^test/} && $_ !~ $may_wait && !is_of_lint($_) } sources());
    check_specs();
    return;
}

sub check_specs {
    my %expected = map { (basename($_, ".out") => 1) }
      grep { m{^test/isolation/expected/} } files();
    for my $spec (grep { m{^test/isolation/specs/.*\.spec$} } files()) {
        my $name = basename($spec, '.spec');
        found($spec, "has no expected output; check its result and keep it as expected/$name.out")
          if !delete $expected{$name} && !grep { /^\Q$name\E_\d$/ } keys %expected;
        found("$spec:1", 'the first line must be a comment that states the property')
          if (slurp($spec))[0] !~ /^#\s*\S/;
    }
    for (sort keys %expected) {
        (my $stem = $_) =~ s/_\d$//;
        found("test/isolation/expected/$_.out", 'belongs to no spec; remove it')
          if !-f "test/isolation/specs/$stem.spec";
    }
    return;
}

# A test is named by its file, and by words in it.
sub check_conformance {
    my $table = 'test/conformance.md';
    my %missing = map { ($_ => 1) } 1 .. 84;
    for my $line (slurp($table)) {
        my ($number, $tests) = $line =~ /^\| (\d+) \|.*\| (.*) \|$/ or next;
        found($table, "$number stands there twice, or is none") if !delete $missing{$number};
        found($table, "$number names no test") if $tests !~ /^`/;
        while ($tests =~ /`([^`]+)`((?: "[^"]+")*)/g) {
            my ($file, $words) = ("test/$1", $2);
            $file =~ s{/(isolation)/(\w+)$}{/$1/specs/$2.spec};
            if (!-f $file) {
                found($table, "$number: there is no $file");
                next;
            }
            my $text = join ' ', slurp($file);
            $text =~ s/''|\\'/'/g;
            $text =~ s/\s+/ /g;
            for ($words =~ /"([^"]+)"/g) {
                found($table, "$number: $file has no test '$_'") if index($text, $_) < 0;
            }
        }
    }
    found($table, "says nothing of statement $_") for sort { $a <=> $b } keys %missing;
    return;
}

# A rule that nothing plays is only a wish, and a scenario without a rule judges by taste.
sub check_protocol {
    my ($page, $kit) = ('docs/worker-protocol.md', qr{^test/protocol/kit/\w+\.py$});
    my %rules = map { /^- \*\*(\d+\.\d+)\*\*/ ? ($1 => 1) : () } slurp($page);
    my %played;
    for my $file (grep { $_ =~ $kit } files()) {
        $played{$_} = $file for map { /^\@scenario\("([^"]*)"/ } slurp($file);
    }
    found($page, "no scenario of test/protocol/kit plays rule $_")
      for grep { !$played{$_} } sort keys %rules;
    found($played{$_}, "a scenario plays rule $_, which $page does not have")
      for grep { !$rules{$_} } sort keys %played;
    for my $worker (grep { m{^test/protocol/workers/} } files()) {
        for my $rule (map { /^\W+without: (.*)/ ? split ' ', $1 : () } slurp($worker)) {
            found($worker, "leaves out rule $rule, which $page does not have")
              if !grep { $_ eq $rule || index($_, "$rule.") == 0 } keys %rules;
        }
    }
    return;
}

# A mutant that changes nothing proves nothing.
sub check_mutants {
    my $before = findings();
    open my $said, '-|', 'test/mutants/run', '--check' or die "lint: test/mutants/run: $!\n";
    while (<$said>) {
        chomp;
        found(/^(\S+): (.*)/ ? ($1, $2) : ('test/mutants/run', $_));
    }
    found('test/mutants/run', 'cannot check the mutants; see above')
      if !close $said && findings() == $before;
    return;
}

1;
