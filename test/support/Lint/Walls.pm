package Lint::Walls;

# What each of the three parts (server, worker, SQL) must leave to another.
use strict;
use warnings;
use Lint::Tree qw(found slurp files cpp_files without_strings each_line_of_code);

# Nothing in the server may need the C++ runtime: it would throw, or allocate behind palloc.
sub check_extension {
    my $banned = qr/\b(?:new|delete|throw|try|catch|dynamic_cast|typeid|thread_local)\b
        |\bstd::(?:string|vector|map|set|list|deque|unordered_\w+|function|thread|mutex|\w+_ptr)\b
        |\#\s*include\s*<(?:iostream|string|vector|map|set|list|mutex|thread|functional|memory)>/x;
    each_line_of_code(
        sub {
            my ($place) = @_;
            $_ = without_strings($_);
            s/= *delete\b//;
            found($place,
                'asks for the version; put what differs into extension/server/compat.hpp')
              if /\bPG_VERSION_NUM\b/ && $place !~ m{^extension/server/compat\.hpp:};
            found($place, "'$&' needs a newer minor version, or misses its checks; "
                  . 'extension/server/compat.hpp has header_of() and catalogue_field()')
              if /\b(?:DatumGetHeapTupleHeader|PG_GETARG_HEAPTUPLEHEADER|heap_getattr)\b/
              && $place !~ m{^extension/server/compat\.hpp:};
            found($place, "'$&' takes a spinlock unseen; extension/server/spinlock.hpp has "
                  . 'lock_spin() and unlock_spin()')
              if /\bSpinLock(?:Acquire|Release)\b/ && $place !~ m{^extension/server/spinlock\.hpp:};
            found($place, "'$&' in the server; use palloc, ereport and plain structs") if /$banned/;
        },
        grep { m{^extension/} } cpp_files());
    return;
}

# An id that a sequence gives by itself comes back after a failover, a token after a crash.
sub check_sequences {
    each_line_of_code(
        sub {
            found($_[0], 'asks a sequence itself; next_id() takes ids, take_number() other numbers')
              if /\bnextval_internal\b/
              && $_[0] !~ m{^extension/(?:access/sequence|liveness/attachment)\.cpp:};
        },
        grep { m{^extension/} } cpp_files());
    for my $file (grep { m{^sql/.*\.sql$} && !m{^sql/releases/} } files()) {
        found($file, 'asks a sequence itself; pulse_internal.next_id() takes ids')
          if grep { /\bnextval\b/ } slurp($file);
    }
    return;
}

# The worker calls functions: what a table looks like is the extension's own affair.
sub check_worker {
    my %relation = map { $_ => 1 }
      map { /^CREATE (?:OR REPLACE )?(?:UNLOGGED )?(?:TABLE|VIEW|SEQUENCE) pulse\.(\w+)/ ? $1 : () }
      map { slurp($_) } grep { m{^sql/.*\.sql$} } files();
    my $names = join '|', sort keys %relation or return;
    each_line_of_code(
        sub {
            found($_[0], "'$&' names a relation; call a function of the schema pulse instead")
              if /\bpulse\.(?:$names)\b(?!\s*\()/
              || /\b(?:from|update|into)\s+pulse\.\w+\b(?!\s*\()/i;
        },
        grep { m{^(?:base|worker)/} } cpp_files());
    return;
}

# The operator's program reads views and calls functions, which an observer or operator may.
sub check_console {
    my %table = map { $_ => 1 }
      map { /^CREATE (?:UNLOGGED )?(?:TABLE|SEQUENCE) pulse\.(\w+)/ ? $1 : () }
      map { slurp($_) } grep { m{^sql/.*\.sql$} } files();
    my $names = join '|', sort keys %table or return;
    each_line_of_code(
        sub {
            found($_[0], "'$&' names a table; read a view or call a function of the schema pulse")
              if /\bpulse\.(?:$names)\b(?!\s*\()/ || /\bpulse_internal\./;
        },
        grep { m{^console/} } cpp_files());
    return;
}

# The value of a list of the Makefile, lists that it names included.
sub list_of {
    my ($makefile, $name) = @_;
    my $value = join ' ', $makefile =~ /^\Q$name\E\s*[:+]?=(.*)$/mg;
    $value =~ s/\$\((\w+)\)/list_of($makefile, $1)/ge;
    return $value;
}

# What the extension installs reads the same in a database of any encoding, and in a session with
# standard_conforming_strings off.
sub check_sql_literals {
    for my $file (grep { m{^sql/.*\.sql$} && !m{^sql/releases/} } files()) {
        my $number = 0;
        for my $line (slurp($file)) {
            $number++;
            found("$file:$number", 'not ASCII: no encoding but UTF-8 may have it')
              if $line =~ /[^\x00-\x7F]/;
            found("$file:$number", "a backslash in a plain literal; write E'\\\\' or a bracket")
              if $line !~ /^\s*--|^\\echo|\\gset|E'/ && $line =~ /'[^']*\\[^']*'/;
        }
    }
    return;
}

sub check_sql_parts {
    my $makefile = join "\n", slurp('Makefile');
    $makefile =~ s/\\\n//g;
    my ($structure, $functions, $companion) =
      map { list_of($makefile, $_) } qw(SQL_STRUCTURE SQL_FUNCTIONS SQL_COMPANION);
    my @listed = split ' ', "$structure $functions $companion";
    my %listed = map { ("sql/$_.sql" => 1) } @listed;
    found('Makefile', "lists $_, which does not exist; write it or take it off the list")
      for grep { !-f } sort keys %listed;
    found($_, 'is in no list of SQL parts; add it to the Makefile in load order')
      for grep { m{^sql/(?!(?:releases|upgrade|citus|tap|graphile)/).*\.sql$} && !$listed{$_} }
      files();
    for my $part (split ' ', $functions) {
        next if !-f "sql/$part.sql";
        each_line_of_code(
            sub {
                found($_[0], 'cannot be replayed by an upgrade; write CREATE OR REPLACE')
                  if /^CREATE (?:FUNCTION|PROCEDURE|VIEW) /;
            },
            "sql/$part.sql");
    }
    return;
}

# One folder knows the client library; all others know the folder's connections.
sub check_libpq {
    my $client = qr{<libpq-fe\.h> | "base/postgres/pipeline\.hpp"
        | \bPG(?:conn|result|cancel|notify)\b | \bPQ[a-z]\w+(?=\() }x;
    each_line_of_code(
        sub {
            found($_[0], "'$&' is libpq's: base/postgres is the only code that includes libpq-fe.h")
              if $_ =~ $client;
        },
        grep { m{^(?:base|worker|console)/} && !m{^base/postgres/} } cpp_files());
    return;
}

1;
