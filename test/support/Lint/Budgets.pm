package Lint::Budgets;

# How long lines, functions and files may be, and how full a folder.
use strict;
use warnings;
use File::Basename qw(dirname);
use Lint::Tree qw(found slurp files cpp_files sources);

use constant {
    MAX_FILE_LINES => 400, MAX_FUNCTION_LINES => 70, MAX_COLUMNS => 100,
    MAX_FOLDER_FILES => 20 };

# A spec's statements stand in its expected output as they are, so they are not wrapped. A generated
# file is as long as the catalogue.
sub check_files {
    for my $file (grep { !/\.spec$/ } sources()) {
        my @lines = slurp($file);
        found($file, @lines . ' lines, more than ' . MAX_FILE_LINES . '; split it by concept')
          if @lines > MAX_FILE_LINES && $file !~ m{/generated/};
        for my $i (0 .. $#lines) {
            found("$file:" . ($i + 1), length($lines[$i]) . ' columns; wrap at ' . MAX_COLUMNS)
              if length $lines[$i] > MAX_COLUMNS;
            found("$file:" . ($i + 1), 'white space at the end of the line; remove it')
              if $lines[$i] =~ /\s$/;
        }
    }
    return;
}

# Rough, and enough with formatted sources: from a first column to the brace in the first column.
sub check_functions {
    for my $file (cpp_files()) {
        my ($number, $start) = (0, 0);
        for (slurp($file)) {
            $number++;
            $start = $number if /^[A-Za-z_]/ && !/^\w+:$/;
            found_long_function($file, $start, $number) if /^}$/;
        }
    }
    return;
}

sub found_long_function {
    my ($file, $first, $last) = @_;
    my $lines = $last - $first + 1;
    found("$file:$first", "a function of $lines lines, more than " . MAX_FUNCTION_LINES
          . '; branch in the parent, compute in leaves')
      if $lines > MAX_FUNCTION_LINES;
    return;
}

sub check_sql_functions {
    for my $file (grep { m{^sql/.*\.sql$} } files()) {
        my ($number, $start, $quotes) = (0, 0, 0);
        for (slurp($file)) {
            $number++;
            ($start, $quotes) = ($number, 0) if /^CREATE (?:OR REPLACE )?(?:FUNCTION|PROCEDURE) /;
            $quotes += () = /\$\w*\$/g;
            next unless $start && $quotes % 2 == 0 && /;\s*$/;
            found_long_function($file, $start, $number);
            $start = 0;
        }
    }
    return;
}

sub check_folders {
    my %count;
    $count{ dirname($_) }++
      for grep { m{^(?:extension|base|worker/src|console/src|sql)/.*\.(?:[ch]pp|sql)$} } files();
    for my $folder (sort keys %count) {
        found($folder, "$count{$folder} sources, more than " . MAX_FOLDER_FILES
              . '; make a folder of what belongs together')
          if $count{$folder} > MAX_FOLDER_FILES;
    }
    return;
}

1;
