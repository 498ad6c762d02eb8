package Reference::Node;

# clients/node/lib/generated: the calls as the library makes them, and their types.
use strict;
use warnings;
use utf8;
use Reference::Calls qw(calls row_types enums camel_case as_text may_give_none);

use constant MAX_COLUMNS => 98;

my $mark = "// Written by test/docs/generate; do not edit.\n";

# Types of TypeScript: of arguments, and of columns that come back.
my %argument = (
    text => 'string', bigint => 'Id', json => 'unknown', bool => 'boolean',
    timestamptz => 'Date | string', interval => 'Interval', 'pulse.job_spec[]' => 'JobSpec[]',
    regprocedure => 'string', (map { $_ => 'number' } qw(int smallint), 'double precision'));
my %column = (%argument, bigint => 'string', timestamptz => 'Date', interval => 'string',
    '"char"' => 'string');

# Arguments of json that stand for objects of the schema, whose members have names in SQL.
my %shape = ('add_flow.jobs' => 'FlowJob[]');

sub pages {
    my ($catalogue, $groups) = @_;
    my @calls = calls($catalogue, $groups);
    my %rows = row_types($catalogue, @calls);
    return (
        'clients/node/lib/generated/functions.js' => script(\%rows, @calls),
        'clients/node/lib/generated/functions.mjs' => module(@calls),
        'clients/node/lib/generated/functions.d.ts' => types($catalogue, \%rows, @calls));
}

sub quoted { return "'" . $_[0] =~ s/(['\\])/\\$1/gr . "'" }

# `name: 'text'` pairs within braces, on as few lines as they need.
sub object {
    my ($indent, @pairs) = @_;
    return wrapped("$indent  ", map { "$_->[0]: " . quoted($_->[1]) } @pairs);
}

sub wrapped {
    my ($indent, @pieces) = @_;
    my $line = '{ ' . join(', ', @pieces) . ' }';
    return $line if @pieces < 4 && length "$indent$line" < MAX_COLUMNS - 12;
    my @lines = ($indent);
    for my $piece (@pieces) {
        push @lines, $indent if length("$lines[-1] $piece,") > MAX_COLUMNS && $lines[-1] ne $indent;
        $lines[-1] .= ($lines[-1] eq $indent ? '' : ' ') . "$piece,";
    }
    return "{\n" . join("\n", @lines) . "\n" . substr($indent, 2) . '}';
}

sub pairs_of { return map { [ camel_case($_->{name}), $_->{type} ] } @_ }

# The list of a SELECT: each column by the library's name, inexact types as text.
sub selected {
    my (@columns) = @_;
    return map {
        my $text = as_text($_->{type});
        my $name = camel_case($_->{name});
        $_->{name} . ($text ? "::$text" : '')
          . ($text || $name ne $_->{name} ? qq( AS "$name") : '')
    } @columns;
}

sub script {
    my ($rows, @calls) = @_;
    my $text = $mark . "'use strict'\n\nconst rows = {\n";
    for my $name (sort keys %{$rows}) {
        $text .= "  $name: [\n" . join('', map { '    ' . quoted($_) . ",\n" }
            selected(@{ $rows->{$name} })) . "  ],\n";
    }
    $text .= "}\n\nmodule.exports = {\n";
    for my $call (@calls) {
        $text .= '  ' . camel_case($call->{name}) . ": {\n    name: " . quoted($call->{name})
          . ",\n    gives: " . quoted($call->{gives}) . ",\n";
        $text .= "    isProcedure: true,\n" if $call->{is_procedure};
        $text .= "    given: [" . join(', ', map { quoted(camel_case($_)) } @{ $call->{given} })
          . "],\n";
        $text .= '    takes: ' . object('    ', pairs_of(@{ $call->{takes} })) . ",\n";
        if ($call->{row}) { $text .= "    columns: rows.$call->{row},\n" }
        elsif ($call->{columns}) {
            $text .= "    columns: [\n" . join('', map { '      ' . quoted($_) . ",\n" }
                selected(@{ $call->{columns} })) . "    ],\n";
        }
        elsif ($call->{type} && !$call->{is_procedure}) {
            $text .= "    columns: [" . quoted(
                join '', selected({ name => 'value', type => $call->{type} })) . "],\n";
        }
        $text .= "  },\n";
    }
    return "$text}\n";
}

# The names for `import`, which are to be known without a run of the library.
sub module {
    my $names = wrapped('  ', map { camel_case($_->{name}) } @_);
    return $mark . "import { calls } from '../calls.js'\n\nexport const $names = calls\n";
}

sub type_of {
    my ($known, $enums, $type) = @_;
    my $element = $type =~ s/\[\]$//r;
    return $known->{$type} if $known->{$type};
    return class_name($element) . ($type =~ /\[\]$/ ? '[]' : '') if $enums->{$element};
    my $found = $known->{$element} or die "generate: no type of TypeScript for $type\n";
    return $type =~ /\[\]$/ ? "$found\[]" : $found;
}

sub class_name { return ucfirst camel_case($_[0] =~ s/^pulse\.//r) }

sub comment {
    my ($indent, $text) = @_;
    my ($line, @lines) = ("$indent * ");
    for my $word (split ' ', $text =~ s{\*/}{* /}gr) {
        if (length("$line $word") > MAX_COLUMNS) { push @lines, $line; $line = "$indent * " }
        $line .= ($line =~ /\* $/ ? '' : ' ') . $word;
    }
    return join "\n", "$indent/**", @lines, $line, "$indent */\n";
}

sub interface {
    my ($name, $enums, @columns) = @_;
    my $text = "export interface $name {\n";
    for (@columns) {
        $text .= comment('  ', $_->{comment}) if $_->{comment};
        $text .= '  ' . camel_case($_->{name}) . ': '
          . type_of(\%column, $enums, $_->{type}) . ($_->{name} eq 'id' ? "\n" : " | null\n");
    }
    return "$text}\n";
}

sub types {
    my ($catalogue, $rows, @calls) = @_;
    my %enums = enums($catalogue);
    my $text = $mark . <<'TEXT';
import type { Database, FlowJob, Id, Interval, JobSpec, Unique } from '../types'

TEXT
    for (sort keys %enums) {
        $text .= 'export type ' . class_name($_) . ' =' . join('', map { "\n  | '$_'" }
            @{ $enums{$_} }) . "\n";
    }
    $text .= "\n" . interface(row_name($_), \%enums, @{ $rows->{$_} }) for sort keys %{$rows};
    for my $call (grep { $_->{columns} } @calls) {
        $text .= "\n"
          . interface(class_name($call->{name}) . 'Row', \%enums, @{ $call->{columns} });
    }
    return join "\n", $text, map { signatures(\%enums, $_) } @calls;
}

# As a row is no object of the language: Job is the job that a handler gets.
sub row_name { return class_name($_[0]) . 'Row' }

sub argument_type {
    my ($enums, $call, $argument) = @_;
    return $shape{"$call->{name}.$argument->{name}"}
      // type_of(\%argument, $enums, $argument->{type});
}

# Of add_job first the one with `unique`, which gives the row of add_job_once.
sub signatures {
    my ($enums, $call) = @_;
    my $result = result_type($enums, $call);
    return signature($enums, $call, $result) if $call->{name} ne 'add_job';
    return signature($enums, $call, 'AddJobOnceRow', 'unique: Unique')
      . signature($enums, $call, $result, 'unique?: Unique');
}

sub signature {
    my ($enums, $call, $result, @more) = @_;
    my %given = map { $_ => 1 } @{ $call->{given} };
    # Behind an optional argument none is required.
    my $is_required = "@more" =~ /^\w+:/;
    my @given = map { camel_case($_->{name})
          . ($_->{is_optional} && !$is_required ? '?' : '') . ': '
          . argument_type($enums, $call, $_) } grep { $given{ $_->{name} } } @{ $call->{takes} };
    my @options = map { camel_case($_->{name}) . '?: ' . argument_type($enums, $call, $_)
          . ' | null' } grep { !$given{ $_->{name} } } @{ $call->{takes} };
    push @options, @more;
    my @lines = ("export function " . camel_case($call->{name}) . '(', '  db: Database,');
    push @lines, map { "  $_," } @given;
    my $options = 'options' . ($is_required ? '' : '?');
    push @lines, "  $options: {", (map { "    $_" } @options), '  },' if @options;
    return comment('', $call->{comment}) . join("\n", @lines, "): Promise<$result>") . "\n";
}

sub result_type {
    my ($enums, $call) = @_;
    return 'void' if $call->{gives} eq 'nothing';
    my $one = $call->{row} ? row_name($call->{row})
      : $call->{columns} ? class_name($call->{name}) . 'Row'
      : type_of(\%column, $enums, $call->{type});
    return $call->{gives} =~ /s$/ ? "$one\[]" : may_give_none($call) ? "$one | null" : $one;
}

1;
