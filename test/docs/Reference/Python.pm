package Reference::Python;

# clients/python/pg_pulse/generated: the calls as the library makes them, with their types.
use strict;
use warnings;
use utf8;
use Reference::Calls qw(calls row_types enums camel_case as_text may_give_none);

use constant MAX_COLUMNS => 98;

# Types of Python: of arguments, and of columns that come back.
my %argument = (
    text => 'str', bigint => 'Id', json => 'object', bool => 'bool', interval => 'Interval',
    timestamptz => 'datetime | str', 'pulse.job_spec[]' => 'Iterable[JobSpec]',
    regprocedure => 'str', (map { $_ => 'int' } qw(int smallint)), 'double precision' => 'float');
my %column = (%argument, bigint => 'str', timestamptz => 'datetime', interval => 'str',
    json => 'Any', '"char"' => 'str');

# Arguments of json that stand for objects of the schema.
my %shape = ('add_flow.jobs' => 'Iterable[FlowJob]');

my $head = <<'TEXT';
# Written by test/docs/generate; do not edit.
from collections.abc import Awaitable, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, overload

from ..calls import LEFT_OUT, Function, call, flow_document, once_arguments
from ..types import AsyncDatabase, Database, FlowJob, Id, Interval, JobSpec, Unique

TEXT

sub pages {
    my ($catalogue, $groups) = @_;
    my @calls = calls($catalogue, $groups);
    my %rows = row_types($catalogue, @calls);
    my %enums = enums($catalogue);
    my $text = $head;
    for (sort keys %enums) {
        $text .= class_name($_) . ' = Literal[' . join(', ', map { qq("$_") } @{ $enums{$_} })
          . "]\n";
    }
    $text .= row_class(row_name($_), \%enums, @{ $rows{$_} }) for sort keys %rows;
    $text .= row_class(class_name($_->{name}) . 'Row', \%enums, @{ $_->{columns} })
      for grep { $_->{columns} } @calls;
    $text .= function(\%enums, $_) for @calls;
    $text .= "\n\n__all__ = [\n" . wrapped('    ', map { qq("$_") }
        sort((map { class_name($_) } keys %enums), (map { row_name($_) } keys %rows),
            (map { $_->{name} } @calls),
            map { class_name($_->{name}) . 'Row' } grep { $_->{columns} } @calls)) . "]\n";
    return ('clients/python/pg_pulse/generated/functions.py' => $text);
}

sub class_name { return ucfirst camel_case($_[0] =~ s/^pulse\.//r) }

# As a row is no object of the language: Job is the job that a handler gets.
sub row_name { return class_name($_[0]) . 'Row' }

# Pieces behind commas, on as few lines as they need.
sub wrapped {
    my ($indent, @pieces) = @_;
    my @lines = ($indent);
    for my $piece (@pieces) {
        push @lines, $indent if length("$lines[-1] $piece,") > MAX_COLUMNS && $lines[-1] ne $indent;
        $lines[-1] .= ($lines[-1] eq $indent ? '' : ' ') . "$piece,";
    }
    return join "\n", @lines, '';
}

sub filled {
    my ($indent, $first, $text) = @_;
    my @lines = ($indent . $first);
    for my $word (split ' ', $text =~ s/"""/'''/gr) {
        push @lines, $indent . ($first eq '# ' ? '# ' : '')
          if length("$lines[-1] $word") > MAX_COLUMNS - 4;
        $lines[-1] .= ($lines[-1] =~ /^ *(?:# |""")?$/ ? '' : ' ') . $word;
    }
    return join "\n", @lines;
}

sub type_of {
    my ($known, $enums, $type) = @_;
    my $element = $type =~ s/\[\]$//r;
    return $known->{$type} if $known->{$type};
    my $found = $enums->{$element} ? class_name($element)
      : $known->{$element} // die "generate: no type of Python for $type\n";
    return $found if $type !~ /\[\]$/;
    return $known == \%column ? "list[$found]" : "Iterable[$found]";
}

sub row_class {
    my ($name, $enums, @columns) = @_;
    my $text = "\n\n\@dataclass(frozen=True, slots=True)\nclass $name:\n";
    for (@columns) {
        $text .= filled('    ', '# ', $_->{comment}) . "\n" if $_->{comment};
        my $type = type_of(\%column, $enums, $_->{type});
        $text .= "    $_->{name}: $type" . ($_->{name} eq 'id' || $type eq 'Any' ? '' : ' | None')
          . "\n";
    }
    return $text . column_list($name, @columns);
}

# The list of a SELECT: inexact types as text.
sub selected {
    return map {
        my $text = as_text($_->{type});
        $_->{name} . ($text ? "::$text AS $_->{name}" : '')
    } @_;
}

sub class_of {
    my ($call) = @_;
    return $call->{row} ? row_name($call->{row})
      : $call->{columns} ? class_name($call->{name}) . 'Row' : undef;
}

# The columns of a row as a SELECT has them, in lines that stand behind one another.
sub column_list {
    my ($name, @columns) = @_;
    my @lines = map { s/,$/, /r =~ s/^ +//r } split /\n/, wrapped('    ', selected(@columns));
    $lines[-1] =~ s/, $//;
    return "\n\n_$name = (\n" . join('', map { qq(    "$_"\n) } @lines) . ")\n";
}

# The description that pg_pulse.calls makes statements of.
sub description {
    my ($call) = @_;
    my $class = class_of($call);
    my @takes = map { qq("$_->{name}": ) . "'$_->{type}'" =~ s/'/"/gr } @{ $call->{takes} };
    return "\n\n_$call->{name} = Function(\n" . qq(    "$call->{name}", "$call->{gives}",)
      . ($class ? " row=$class, columns=_$class," : '')
      . ($call->{type} ? scalar_of($call) : q())
      . ($call->{is_procedure} ? ' is_procedure=True,' : '')
      . "\n    takes={" . (@takes ? "\n" . wrapped('        ', @takes) . '    ' : '') . "},\n)\n";
}

# A function that gives no row has one column, of this type.
sub scalar_of {
    my ($call) = @_;
    my $text = as_text($call->{type});
    my $column = 'value' . ($text ? "::$text" : '') . ' AS value';
    return ($call->{is_procedure} ? '' : qq( columns="$column",)) . qq( type="$call->{type}",);
}

sub argument_type {
    my ($enums, $call, $argument) = @_;
    return $shape{"$call->{name}.$argument->{name}"}
      // type_of(\%argument, $enums, $argument->{type});
}

sub result_type {
    my ($enums, $call) = @_;
    return 'None' if $call->{gives} eq 'nothing';
    my $one = class_of($call) // type_of(\%column, $enums, $call->{type});
    return $call->{gives} =~ /s$/ ? "list[$one]" : may_give_none($call) ? "$one | None" : $one;
}

sub parameters {
    my ($enums, $call, @more) = @_;
    my %given = map { $_ => 1 } @{ $call->{given} };
    my @given = map { "$_->{name}: " . argument_type($enums, $call, $_)
          . ($_->{is_optional} ? ' = ...' : '') } grep { $given{ $_->{name} } } @{ $call->{takes} };
    my @options = map { "$_->{name}: " . argument_type($enums, $call, $_) . ' | None = ...' }
      grep { !$given{ $_->{name} } } @{ $call->{takes} };
    push @options, @more;
    return (@given, @options ? ('*', @options) : ());
}

sub signatures {
    my ($call, $result, @parameters) = @_;
    my $text = '';
    for (['AsyncDatabase', "Awaitable[$result]"], ['Database', $result]) {
        $text .= "\n\n\@overload\ndef $call->{name}(\n"
          . wrapped('    ', "db: $_->[0]", @parameters) . ") -> $_->[1]: ...\n";
    }
    return $text;
}

sub function {
    my ($enums, $call) = @_;
    my $name = $call->{name};
    my $text = description($call);
    $text .= signatures($call, 'AddJobOnceRow', parameters($enums, $call, 'unique: Unique'))
      if $name eq 'add_job';
    $text .= signatures($call, result_type($enums, $call),
        parameters($enums, $call, $name eq 'add_job' ? 'unique: None = ...' : ()));
    my @given = @{ $call->{given} };
    my %is_optional = map { $_->{name} => $_->{is_optional} } @{ $call->{takes} };
    my $options = @{ $call->{takes} } > @given;
    $text .= "\n\ndef $name(\n" . wrapped('    ', 'db',
        (map { $_ . ($is_optional{$_} ? '=LEFT_OUT' : '') } @given), $options ? '**options' : ())
      =~ s/(\*\*options),/$1/r . "):\n" . filled('    ', '"""', $call->{comment}) . "\"\"\"\n";
    $text .= qq(    if options.get("unique"):\n)
      . "        return add_job_once(db, **once_arguments(identifier, payload, **options))\n"
      . qq(    options.pop("unique", None)\n) if $name eq 'add_job';
    my @values = map { $name eq 'add_flow' && $_ eq 'jobs' ? 'flow_document(jobs)' : $_ } @given;
    return $text . "    return call(\n"
      . wrapped('        ', 'db', "_$name", '[' . join(', ', @values) . ']',
        $options ? 'options' : ()) . "    )\n";
}

1;
