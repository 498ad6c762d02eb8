package Lint::Unity;

# A release compiles several files of a target at once (pulse_unity in worker/CMakeLists.txt), so
# that what one file has in an anonymous namespace meets what the next file has. A name of an
# anonymous namespace stands in one file of its target only, and in no header of the namespace.
# Functions are left to Lint::Twins.
use strict;
use warnings;
use File::Basename qw(dirname);
use Lint::Tree qw(found slurp cpp_files without_comment without_strings);

sub check {
    my %names = map { $_ => names_of($_) }
      grep { m{^(?:base|worker|console|test/(?:worker|console))/} } cpp_files();
    my %in_headers;
    for my $file (grep { /\.hpp$/ } sort keys %names) {
        push @{ $in_headers{ $_->{name} } }, "$file:$_->{line}" for @{ $names{$file} };
    }
    my %targets = targets();
    for my $target (sort keys %targets) {
        my $is_test = grep { m{^test/} } @{ $targets{$target} };
        my %places;
        for my $file (grep { $names{$_} } @{ $targets{$target} }) {
            push @{ $places{ $_->{name} } }, "$file:$_->{line}"
              for grep { $_->{is_anonymous} } @{ $names{$file} };
        }
        for my $name (sort keys %places) {
            my @headers = grep { $is_test || !m{^test/} } @{ $in_headers{$name} // [] };
            my ($first, @further) = (@{ $places{$name} }, @headers);
            my ($bare) = $name =~ /(\w+)$/;
            found($first, "the name $bare stands in @{[ join ' and ', @further ]} too, which "
                  . "$target compiles with this file; give each a name of its own")
              if @further;
        }
    }
    return;
}

# Target to the files that CMake compiles for the target in batches.
sub targets {
    my %files;
    my @folders = qw(base worker console test/worker test/console);
    for my $list (grep { -f } map { "$_/CMakeLists.txt" } @folders) {
        my $folder = dirname($list);
        my $text = join "\n", map { s/#.*//r } slurp($list);
        while ($text =~ /\badd_(?:library|executable)\(\s*([\w-]+)\s([^)]*)\)/g) {
            my ($target, $arguments) = ($1, $2);
            next if $text !~ /\bpulse_(?:unity|library|tests)\(\Q$target\E\)/;
            $files{$target} = [ map { "$folder/$_" } $arguments =~ /(\S+\.cpp)\b/g ];
        }
    }
    return %files;
}

# Types, constants and variables in the namespaces of a file, with their namespace before the name.
# Rough, and enough with formatted sources: what stands in the first column stands in a namespace.
sub names_of {
    my ($file) = @_;
    my (@names, @within, $head, $start);
    my $number = 0;
    for my $line (slurp($file)) {
        $number++;
        if ($line =~ /^namespace(?: ([\w:]+))? \{/) { push @within, $1 // ''; next }
        if ($line =~ m{^\}  // namespace}) { pop @within; next }
        if ($line =~ /^[A-Za-z_\[]/) { ($head, $start) = ('', $number) }
        elsif (!defined $head || $line !~ /^\s+\S/) { undef $head; next }
        $head .= without_strings(without_comment($file, $line)) . ' ';
        next if $head !~ /[={;]/;
        my $name = name_in($head);
        push @names, {
            name => join('::', (grep { length } @within), $name),
            line => $start,
            is_anonymous => scalar(grep { !length } @within),
        } if defined $name;
        undef $head;
    }
    return \@names;
}

sub name_in {
    my ($head) = @_;
    $head =~ s/^template\s*<[^>]*>\s*//;
    $head =~ s/\[\[.*?\]\]\s*//g;
    return $1 if $head =~ /^(?:class|struct|union|enum(?: class)?)\s+(\w+)[^;(]*\{/;
    return $1 if $head =~ /^using\s+(\w+)\s*=/;
    return if $head =~ /^(?:class|struct|union|enum|using|typedef|static_assert|extern|friend)\b/;
    1 while $head =~ s/<[^<>]*>//;
    $head =~ s/\s*[={;].*//s;
    return $1 if $head =~ /^[\w:*&\s]+[\s*&](\w+)\s*(?:\[[^\]]*\]\s*)*$/;
    return;
}

1;
