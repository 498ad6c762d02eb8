package Lint::Plans;

# How the server plans what functions of the extension run.
use strict;
use warnings;
use Lint::Tree qw(found slurp files without_comment);

# Functions that run a statement and leave JIT on, each with its reason.
my %with_jit = (
    'pulse_internal.installation_standing' => 'inlined, where a call costs more than the row',
    'pulse_internal.names_in' => 'inlined; it reads no table',
    'pulse_internal.list_names' => 'inlined; it reads no table',
    'pulse.perform_job' => 'runs a handler, which has the settings of its session',
    'pulse_citus._private_group' => 'inlined; it reads a row of the catalogue',
    'pulse_tap.play' => 'runs a handler, which has the settings of its session',
    'pulse_tap.drain' => 'runs handlers, which have the settings of their session',
    'pulse_tap.run_job' => 'runs a handler, which has the settings of its session',
    'pulse_tap.enqueues' => 'runs a statement of the test, which has the settings of its session',
);

# Compiling a plan takes seconds, and nothing cancels it. A plan counts as dear by an estimate, and
# always where a database forbids the only way to its rows.
sub check_jit {
    for my $file (grep { m{^sql/.*\.sql$} && !m{^sql/tap/example/} } files()) {
        my ($number, $start, $name, $text) = (0, 0);
        for my $line (slurp($file)) {
            $number++;
            my $code = without_comment($file, $line);
            if ($code =~ /^CREATE (?:OR REPLACE )?(?:FUNCTION|PROCEDURE) ([\w.]+)\(/) {
                ($start, $name, $text) = ($number, $1, '');
            }
            next unless $start;
            $text .= "$code\n";
            next if (() = $text =~ /\$\w*\$/g) % 2 || $code !~ /;\s*$/;
            found("$file:$start", "$name() runs a statement; write SET jit = off")
              if runs_statement($text) && $text !~ /\bSET jit = off\b/ && !$with_jit{$name};
            $start = 0;
        }
    }
    return;
}

# A SELECT without FROM in SQL is an expression of the statement that calls the function.
sub runs_statement {
    my ($text) = @_;
    my ($language) = $text =~ /\bLANGUAGE (\w+)/ or return 0;
    return 0 if $language eq 'c';
    (my $body = $text) =~ s/.*?(?=\bAS \$|\bRETURN\b|\bBEGIN\b)//s;
    $body =~ s/'(?:[^']|'')*'/''/g;
    return $body =~ /\b(?:SELECT|PERFORM|EXECUTE|CALL|UPDATE|INSERT|DELETE)\b/
      if $language eq 'plpgsql' || $text =~ /\bSET search_path\b/;
    return $body =~ /\bSELECT\b.*\bFROM\b|\b(?:UPDATE|INSERT|DELETE)\b/s;
}

1;
